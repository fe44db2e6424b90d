# frozen_string_literal: true

# The only table of the shop.
class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    create_table :orders do |t|
      t.string :customer, null: false
      t.integer :mailed, null: false, default: 0
    end
  end
end
