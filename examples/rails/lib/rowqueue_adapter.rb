# frozen_string_literal: true

# Active Job on rowqueue: a job is a message in the application's own database, PostgreSQL, MySQL or MariaDB.
# Copy this file to lib/ of the application, and in config/application.rb:
#
#   require_relative "../lib/rowqueue_adapter"
#   config.active_job.queue_adapter = RowqueueAdapter.new
#
# The file is also the worker that runs the jobs. In the application's folder:
#
#   runner consume --type default --worker "ruby lib/rowqueue_adapter.rb"

# A job is sent in the transaction that Active Record has open. A job may have a method `rowqueue_options`, which returns
# more options of `send_with`, such as `{ group_key: "7", max_attempts: 3 }`.
class RowqueueAdapter
  AT_ONCE = 1_000 # jobs in one call of send_batch

  class << self
    attr_accessor :stopping
  end

  # `timestamp`: seconds since 1970, if the job is delayed. Active Job calls enqueue_at then.
  def enqueue(job, timestamp = nil)
    job.provider_job_id = call("send_with", job.queue_name, body(job), options(job, timestamp)).fetch("id")
  end
  alias enqueue_at enqueue

  # perform_all_later of Rails 7.1: all jobs are sent or none. Jobs with equal options share a call.
  def enqueue_all(jobs)
    ActiveRecord::Base.transaction do
      jobs.group_by { |job| [job.queue_name, options(job, job.scheduled_at&.to_f)] }.each do |(queue, options), same|
        if options.key?(:dedup_key) # send_batch has no keys
          same.each { |job| enqueue(job, job.scheduled_at&.to_f) }
        else
          same.each_slice(AT_ONCE) { |part| call("send_batch", queue, part.map { |job| body(job) }.join("\n"), options) }
        end
      end
    end
    jobs.each { |job| job.successfully_enqueued = true }.size
  end

  # Rails 7.2 asks. The transaction that sends a job also takes it back, so there is nothing to wait for. Later versions
  # ask the class of the job, whose attribute of this name must stay false.
  def enqueue_after_transaction_commit? = false

  # Rails 8.1 asks in the steps of a long job.
  def stopping?(*) = self.class.stopping

  private

  def body(job) = JSON.generate(job.serialize)

  def options(job, timestamp)
    due = timestamp && Time.at(timestamp).utc.iso8601(6)
    more = job.respond_to?(:rowqueue_options) ? job.rowqueue_options : {}
    # A job that sends itself again still holds its key.
    more = more.except(:dedup_key, :on_conflict) if job.executions.positive?
    { priority: job.priority, run_at: due, **more }.compact
  end

  # select_all reads a result of MySQL to its end. Its cache would answer a second, equal call.
  def call(procedure, queue, text, options)
    ActiveRecord::Base.connection_pool.with_connection do |connection|
      arguments = [queue, text, JSON.generate(options)].map { |value| connection.quote(value) }.join(", ")
      how = connection.adapter_name == "Mysql2" ? "CALL mq_" : "SELECT * FROM mq."
      connection.uncached { connection.select_all("#{how}#{procedure}(#{arguments})", "Rowqueue").first }
    end
  end

  # What `runner consume --worker` starts: it reads messages and answers each, in lines of JSON.
  class Worker
    LONGEST_ERROR = 4_000 # the queue keeps no more

    # Loads the application of the current folder and runs jobs until the runner hangs up.
    def self.start
      input = $stdin.dup
      output = $stdout.dup
      # What a job or its child processes read and print must not reach the runner.
      $stdin.reopen(File::NULL)
      $stdout.reopen($stderr)
      require File.expand_path("config/environment") # first: Bundler chooses the versions of what is loaded
      require "io/wait"
      new(input, output).run
    end

    def initialize(input, output)
      @input = input.set_encoding("UTF-8")
      @output = output
      @output.sync = true
      ActiveSupport::Notifications.subscribe("retry_stopped.active_job") { |*, payload| @stopped = payload }
    end

    def run
      %w[TERM INT].each { |signal| trap(signal) { stop } }
      while (line = @input.gets)
        @busy = true
        @output.puts(JSON.generate(answer(JSON.parse(line))))
        @busy = false
        break if RowqueueAdapter.stopping && !@input.wait_readable(0)
      end
    end

    private

    # Some process managers signal every process, not only the runner: the job at hand is done first.
    def stop
      RowqueueAdapter.stopping = true
      exit unless @busy
    end

    def answer(message)
      data = parse(message["body"])
      return { id: message["id"], error: "not a job of Active Job", dead: true } unless data

      # An attempt of the queue is one more execution of the job.
      executions = data["executions"].to_i + message["attempt"] - 1
      { id: message["id"], **outcome(data.merge("provider_job_id" => message["id"], "executions" => executions)) }
    end

    def parse(body)
      data = JSON.parse(body)
      data if data.is_a?(Hash) && data["job_class"].is_a?(String)
    rescue JSON::ParserError
      nil
    end

    def outcome(data)
      @stopped = nil
      ActiveJob::Base.execute(data) # within the application's reloader, which also returns connections
      {}
    rescue Exception => e # rubocop:disable Lint/RescueException -- `exit` and the like fail this job only
      { error: text(e), dead: final?(e, data) }
    end

    # The attempts of retry_on are used up: the queue must not begin to count its own.
    def final?(error, data)
      !@stopped.nil? && @stopped[:error].equal?(error) && @stopped[:job].job_id == data["job_id"]
    end

    def text(error)
      [error.class.name, error.message].map { |part| part.to_s.b.force_encoding("UTF-8").scrub }.join(": ")[0, LONGEST_ERROR]
    end
  end
end

if $PROGRAM_NAME == __FILE__
  $LOADED_FEATURES << File.realpath(__FILE__) # the application requires it, too
  RowqueueAdapter::Worker.start
end
