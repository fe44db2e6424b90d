# frozen_string_literal: true

# What a customer has ordered. `mailed` counts the confirmations.
class Order < ApplicationRecord
  # The order and the job are saved together, or neither is.
  def self.place(customer)
    transaction do
      order = create!(customer: customer)
      MailJob.perform_later(order)
      order
    end
  end
end
