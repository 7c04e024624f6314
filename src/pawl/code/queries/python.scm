(function_definition name: (identifier) @name) @definition.function
(class_definition name: (identifier) @name) @definition.class
(module (expression_statement (assignment left: (identifier) @name) @definition.variable))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @definition.field)))
(module (type_alias_statement left: (type (identifier) @name)) @definition.type)
(decorated_definition definition: (_) @inner) @whole

(call function: (identifier) @reference.call)
(call function: (attribute attribute: (identifier) @reference.call))
(attribute attribute: (identifier) @reference.use)
(decorator (identifier) @reference.use)
(argument_list (identifier) @reference.use)
(keyword_argument value: (identifier) @reference.use)
(default_parameter value: (identifier) @reference.use)
(typed_default_parameter value: (identifier) @reference.use)
(type (identifier) @reference.use)
(generic_type (identifier) @reference.use)
(raise_statement (identifier) @reference.use)
(except_clause (identifier) @reference.use)
(as_pattern (identifier) @reference.use)
(tuple (identifier) @reference.use)
(list (identifier) @reference.use)
(pair value: (identifier) @reference.use)

(import_statement name: (dotted_name) @module) @import
(import_statement name: (aliased_import name: (dotted_name) @module alias: (identifier) @alias)) @import
(import_from_statement module_name: (_) @module name: (dotted_name) @name) @import
(import_from_statement module_name: (_) @module
  name: (aliased_import name: (dotted_name) @name alias: (identifier) @alias)) @import
(import_from_statement module_name: (_) @module (wildcard_import) @name) @import
