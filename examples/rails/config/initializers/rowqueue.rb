# frozen_string_literal: true

# The tables of the queue are no part of the application's schema.rb.
ActiveRecord::SchemaDumper.ignore_tables = [/\A(mq|_?yoyo)_/]
