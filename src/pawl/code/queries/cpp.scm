(class_specifier name: (_) @name body: (_)) @definition.class
(namespace_definition name: (_) @name) @definition.module
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @definition.function
(field_declaration declarator: (function_declarator declarator: (_) @name)) @definition.function
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @definition.function
(field_declaration declarator: (reference_declarator (function_declarator declarator: (_) @name))) @definition.function
(declaration declarator: (function_declarator declarator: (destructor_name) @name)) @definition.prototype
(declaration declarator: (function_declarator declarator: (operator_name) @name)) @definition.prototype
(alias_declaration name: (_) @name) @definition.type
(concept_definition name: (_) @name) @definition.type
(template_declaration (_) @inner) @whole

(call_expression function: (qualified_identifier name: (identifier) @reference.call))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @reference.call)))
(call_expression function: (template_function name: (identifier) @reference.call))
(new_expression type: (type_identifier) @reference.call)
(qualified_identifier name: (identifier) @reference.use)
