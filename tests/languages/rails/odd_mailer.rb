# frozen_string_literal: true

# A mail whose text needs no view.
class OddMailer < ActionMailer::Base
  def confirmation(order)
    mail(from: "shop@example.org", to: order.customer, subject: "Your order", body: "Thank you", content_type: "text/plain")
  end
end
