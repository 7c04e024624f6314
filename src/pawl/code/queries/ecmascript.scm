; What JavaScript and TypeScript have in common.
(function_declaration name: (_) @name) @definition.function
(generator_function_declaration name: (_) @name) @definition.function
(class_declaration name: (_) @name) @definition.class
(method_definition name: (_) @name) @definition.method
(variable_declarator name: (identifier) @name value: (arrow_function body: (_) @body)) @definition.function
(variable_declarator name: (identifier) @name value: (function_expression body: (_) @body)) @definition.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @definition.class
(pair key: (property_identifier) @name value: (arrow_function body: (_) @body)) @definition.function
(pair key: (property_identifier) @name value: (function_expression body: (_) @body)) @definition.function
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: (arrow_function body: (_) @body)) @definition.function
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: (function_expression body: (_) @body)) @definition.function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(export_statement (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(call_expression function: (identifier) @_run (#any-of? @_run "it" "test")
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)])) @definition.test
(call_expression function: (member_expression object: (identifier) @_run (#any-of? @_run "it" "test"))
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function) (function_expression)])) @definition.test
(export_statement declaration: (_) @inner) @whole

(call_expression function: (identifier) @reference.call)
(call_expression function: (member_expression property: (property_identifier) @reference.call))
(new_expression constructor: (identifier) @reference.call)
(new_expression constructor: (member_expression property: (property_identifier) @reference.call))
(member_expression property: (property_identifier) @reference.use)
(arguments (identifier) @reference.use)
(array (identifier) @reference.use)
(pair value: (identifier) @reference.use)
(shorthand_property_identifier) @reference.use
(assignment_expression right: (identifier) @reference.use)
(decorator (identifier) @reference.use)

(import_statement source: (string (string_fragment) @module)) @import
(import_statement (import_clause (identifier) @alias) source: (string (string_fragment) @module)) @import.default
(import_statement (import_clause (namespace_import (identifier) @alias)) source: (string (string_fragment) @module)) @import
(import_statement (import_clause (named_imports (import_specifier name: (_) @name !alias)))
  source: (string (string_fragment) @module)) @import
(import_statement (import_clause (named_imports (import_specifier name: (_) @name alias: (_) @alias)))
  source: (string (string_fragment) @module)) @import
(export_statement source: (string (string_fragment) @module)) @import
(export_statement (export_clause (export_specifier name: (_) @name)) source: (string (string_fragment) @module)) @import
(call_expression function: (import) arguments: (arguments . (string (string_fragment) @module))) @import
(variable_declarator name: (identifier) @alias
  value: (call_expression function: (identifier) @_require (#eq? @_require "require")
    arguments: (arguments . (string (string_fragment) @module)))) @import
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name)
  value: (call_expression function: (identifier) @_require (#eq? @_require "require")
    arguments: (arguments . (string (string_fragment) @module)))) @import
(variable_declarator name: (object_pattern (pair_pattern key: (property_identifier) @name value: (identifier) @alias))
  value: (call_expression function: (identifier) @_require (#eq? @_require "require")
    arguments: (arguments . (string (string_fragment) @module)))) @import
(call_expression function: (identifier) @_require (#eq? @_require "require")
  arguments: (arguments . (string (string_fragment) @module))) @import
