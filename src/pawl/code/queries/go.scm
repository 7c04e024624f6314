(function_declaration name: (_) @name) @definition.function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @scope
    (pointer_type (type_identifier) @scope)
    (generic_type type: (type_identifier) @scope)
    (pointer_type (generic_type type: (type_identifier) @scope))]))
  name: (_) @name) @definition.method
(type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @definition.struct
(type_spec name: (_) @name type: (interface_type)) @definition.interface
(type_spec name: (_) @name type: [(type_identifier) (qualified_type) (pointer_type) (map_type) (slice_type) (array_type)
  (function_type) (channel_type) (generic_type)]) @definition.type
(type_alias name: (_) @name) @definition.type
(const_spec (identifier) @name) @definition.variable
(var_spec name: (identifier) @name) @definition.variable
(field_declaration name: (field_identifier) @name) @definition.field
(method_elem name: (_) @name) @definition.method

(call_expression function: (identifier) @reference.call)
(call_expression function: (selector_expression field: (_) @reference.call))
(selector_expression field: (_) @reference.use)
(type_identifier) @reference.use
(argument_list (identifier) @reference.use)

(import_spec !name path: (_ (_) @module)) @import
(import_spec name: (_) @alias path: (_ (_) @module)) @import
