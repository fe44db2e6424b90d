# frozen_string_literal: true

# Confirms an order.
class MailJob < ApplicationJob
  retry_on ActiveRecord::Deadlocked, wait: 10.seconds, attempts: 5

  def perform(order)
    order.with_lock { order.update!(mailed: order.mailed + 1) }
  end
end
