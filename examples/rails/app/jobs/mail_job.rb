# frozen_string_literal: true

# Confirms an order.
class MailJob < ApplicationJob
  retry_on Net::OpenTimeout, wait: 1.minute, attempts: 10

  def perform(order)
    order.with_lock { order.update!(mailed: order.mailed + 1) }
  end
end
