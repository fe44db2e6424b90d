# frozen_string_literal: true

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_mailer/railtie"
require_relative "../lib/rowqueue_adapter"

# A shop that confirms its orders by mail.
module Shop
  # Its settings.
  class Application < Rails::Application
    config.load_defaults 6.1
    config.eager_load = Rails.env.production?
    config.active_job.queue_adapter = RowqueueAdapter.new
  end
end
