(class_declaration name: (_) @name) @definition.class
(record_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(annotation_type_declaration name: (_) @name) @definition.interface
(enum_declaration name: (_) @name) @definition.enum
(method_declaration name: (_) @name) @definition.method
(constructor_declaration name: (_) @name) @definition.method
(compact_constructor_declaration name: (_) @name) @definition.method
(annotation_type_element_declaration name: (_) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (_) @name)) @definition.field
(constant_declaration declarator: (variable_declarator name: (_) @name)) @definition.field
(enum_constant name: (_) @name) @definition.field

(method_invocation name: (_) @reference.call)
(object_creation_expression type: (type_identifier) @reference.call)
(object_creation_expression type: (generic_type (type_identifier) @reference.call))
(method_reference (_) (identifier) @reference.use .)
(field_access field: (identifier) @reference.use)
(annotation name: (identifier) @reference.use)
(marker_annotation name: (identifier) @reference.use)
(type_identifier) @reference.use
(argument_list (identifier) @reference.use)

(import_declaration (identifier) @module .) @import
(import_declaration (scoped_identifier scope: (_) @module name: (_) @name) .) @import
(import_declaration (scoped_identifier) @module (asterisk) @name) @import
