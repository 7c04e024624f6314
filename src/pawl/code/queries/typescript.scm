(abstract_class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(type_alias_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.enum
(internal_module name: (_) @name) @definition.module
(module name: (_) @name) @definition.module
(function_signature name: (_) @name) @definition.function
(method_signature name: (_) @name) @definition.method
(abstract_method_signature name: (_) @name) @definition.method
(public_field_definition name: (_) @name) @definition.field
(property_signature name: (_) @name) @definition.field
(enum_body name: (_) @name @definition.field)
(enum_assignment name: (_) @name) @definition.field

(type_identifier) @reference.use
(extends_clause value: (identifier) @reference.use)

(import_statement (import_require_clause (identifier) @alias source: (string (string_fragment) @module))) @import
