(field_definition property: (_) @name) @definition.field
(class_heritage (identifier) @reference.use)
