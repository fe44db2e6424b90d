# frozen_string_literal: true

# The base of all models.
class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end
