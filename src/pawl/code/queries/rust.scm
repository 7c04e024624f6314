(function_item name: (_) @name) @definition.function
(function_signature_item name: (_) @name) @definition.function
(struct_item name: (_) @name) @definition.struct
(union_item name: (_) @name) @definition.struct
(enum_item name: (_) @name) @definition.enum
(trait_item name: (_) @name) @definition.interface
(type_item name: (_) @name) @definition.type
(associated_type name: (_) @name) @definition.type
(impl_item type: (type_identifier) @name) @definition.implementation
(impl_item type: (generic_type type: (_) @name)) @definition.implementation
(impl_item type: (scoped_type_identifier) @name) @definition.implementation
(mod_item name: (_) @name body: (_)) @definition.module
(const_item name: (_) @name) @definition.variable
(static_item name: (_) @name) @definition.variable
(field_declaration name: (_) @name) @definition.field
(enum_variant name: (_) @name) @definition.field
(macro_definition name: (_) @name) @definition.macro

(call_expression function: (identifier) @reference.call)
(call_expression function: (scoped_identifier name: (_) @reference.call))
(call_expression function: (field_expression field: (_) @reference.call))
(generic_function function: (identifier) @reference.call)
(generic_function function: (scoped_identifier name: (_) @reference.call))
(generic_function function: (field_expression field: (_) @reference.call))
(macro_invocation macro: (identifier) @reference.call)
(macro_invocation macro: (scoped_identifier name: (_) @reference.call))
(field_expression field: (field_identifier) @reference.use)
(scoped_identifier name: (identifier) @reference.use)
(type_identifier) @reference.use
(arguments (identifier) @reference.use)

(use_declaration argument: (_) @module) @import.tree
(mod_item name: (_) @module !body) @import
(extern_crate_declaration name: (_) @module) @import
