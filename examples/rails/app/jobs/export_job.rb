# frozen_string_literal: true

# Exports the orders of a customer: one export at a time for each customer, where the queue is ordered.
class ExportJob < ApplicationJob
  queue_as :export

  def rowqueue_options = { group_key: arguments.first, max_attempts: 3 }

  def perform(customer)
    Rails.logger.info("#{customer}: #{Order.where(customer: customer).count} orders")
  end
end
