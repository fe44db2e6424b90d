# delayed_job, Rails' queue in the database before Solid Queue, from Debian's ruby-delayed-job-active-record.
#
# ruby by_rails.rb delayed-job URL install | send PER_CALL COUNT | work SETTING | pace COUNT
require "active_record"
require "delayed_job_active_record"
require "logger"
require "uri"

_, url, mode, *numbers = ARGV
WATCHING = ENV.key?("PEERS_WATCH")
parts = URI.parse(url)
ActiveRecord::Base.establish_connection(
  adapter: "mysql2", host: parts.host, port: parts.port, username: URI.decode_www_form_component(parts.user),
  password: URI.decode_www_form_component(parts.password || ""), database: parts.path.delete_prefix("/"),
  encoding: "utf8mb4", pool: 2
)

def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def say(*words)
  $stdout.write("#{words.join(' ')}\n")
  $stdout.flush
end

def ready
  say("ready")
  $stdin.gets
end

def body(number) = "#{number.to_s.rjust(10, '0')}#{'abcdefghij' * 8}x"

module Tally
  class << self
    attr_accessor :count, :first, :last

    def report
      @told = seconds
      say("done", count, first, last)
    end

    def add(some)
      self.last = seconds
      self.first ||= last
      self.count += some
      report if last - (@told || 0) > 0.02
    end
  end
end
Tally.count = 0

Empty = Struct.new(:n) do
  def perform
    say("seen", n[0, 10].to_i, seconds) if WATCHING
    Tally.add(1)
  end
end

case mode
when "install"
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do # as the generator of delayed_job_active_record makes it
    create_table :delayed_jobs do |table|
      table.integer :priority, default: 0, null: false
      table.integer :attempts, default: 0, null: false
      table.text :handler, null: false
      table.text :last_error
      table.datetime :run_at
      table.datetime :locked_at
      table.datetime :failed_at
      table.string :locked_by
      table.string :queue
      table.timestamps null: true
    end
    add_index :delayed_jobs, %i[priority run_at], name: "delayed_jobs_priority"
  end
when "send"
  per_call, total = numbers.map(&:to_i)
  ActiveRecord::Base.connection.select_value("SELECT 1")
  ready
  Tally.first = seconds
  if per_call == 1
    total.times { |number| Delayed::Job.enqueue(Empty.new(body(number % 1000))) }
  else # it has no call for several jobs: one transaction for all
    (total / per_call).times do
      Delayed::Job.transaction { per_call.times { |number| Delayed::Job.enqueue(Empty.new(body(number))) } }
    end
  end
  Tally.add(total)
  Tally.report
when "pace"
  ready
  numbers[0].to_i.times do |number|
    sleep(rand(0.15..0.35))
    Delayed::Job.enqueue(Empty.new(body(number)))
    say("sent", number, seconds)
  end
else
  Delayed::Worker.logger = Logger.new(nil)
  Delayed::Worker.sleep_delay = 0.1
  ready
  worker = Delayed::Worker.new(exit_on_complete: !WATCHING, quiet: true)
  worker.start
  Tally.report
end
