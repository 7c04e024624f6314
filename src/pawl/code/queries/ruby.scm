(method name: (_) @name) @definition.function
(singleton_method name: (_) @name) @definition.function
(class name: (_) @name) @definition.class
(module name: (_) @name) @definition.module
(assignment left: (constant) @name) @definition.variable
(call method: (identifier) @_attribute (#any-of? @_attribute "attr_accessor" "attr_reader" "attr_writer")
  arguments: (argument_list (simple_symbol) @name)) @definition.field

(call method: (identifier) @reference.call)
(constant) @reference.use
(argument_list (identifier) @reference.use)

(call method: (identifier) @_require (#any-of? @_require "require" "load")
  arguments: (argument_list . (string (string_content) @module))) @import
(call method: (identifier) @_require (#eq? @_require "require_relative")
  arguments: (argument_list . (string (string_content) @module))) @import.relative
(call method: (identifier) @_require (#eq? @_require "autoload")
  arguments: (argument_list (simple_symbol) @name (string (string_content) @module))) @import
