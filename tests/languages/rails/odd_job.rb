# frozen_string_literal: true

# A job that does what its argument says, and notes what it has handled in the file HANDLED.
class OddJob < ApplicationJob
  class Again < StandardError; end
  class Dropped < StandardError; end
  class Stopped < StandardError; end

  # Its first attempt is the last one.
  class Inner < ApplicationJob
    retry_on ArgumentError, attempts: 1

    def perform(text) = raise(ArgumentError, text)
  end

  retry_on Again, wait: 0.seconds, attempts: 3, jitter: 0
  retry_on(Stopped, wait: 0.seconds, attempts: 2, jitter: 0) { |job, error| job.note("stopped", error.message) }
  discard_on(Dropped) { |job, error| job.note("dropped", error.message) }

  attr_accessor :successfully_enqueued, :rowqueue_options

  def initialize(...)
    super
    self.rowqueue_options = {}
  end

  def perform(what, *arguments)
    note(what, *arguments)
    __send__(what, *arguments)
  end

  def note(what, *arguments)
    line = { what: what, id: provider_job_id, executions: executions, arguments: arguments.map(&:inspect), pid: Process.pid }
    File.open(ENV.fetch("HANDLED"), "a") { |file| file.write("#{JSON.generate(line)}\n") }
  end

  private

  def nothing(*) = nil

  def fails(text) = raise(text)

  def again(text) = raise(Again, text)

  def dropped(text) = raise(Dropped, text)

  def stopped(text) = raise(Stopped, text)

  def binary(text) = raise(text.b)

  def leaves(status) = exit(status)

  # Nothing before has left a connection of this process in use.
  def counts
    note("busy", ActiveRecord::Base.connection_pool.stat[:busy])
    Order.count
  end

  def dies = Process.kill("KILL", Process.pid)

  def missing = raise(NotImplementedError, "not written yet")

  def endless = endless

  # Another job's attempts are used up, and its error is this one's.
  def nested(text) = Inner.perform_now(text)

  def sleeps(seconds)
    sleep(seconds)
    note("slept")
  end

  # A child process that reads standard input and prints.
  def chatters
    puts "from the job"
    $stdout.puts '{"id": 1}'
    system("cat; echo from its child") || raise("no shell")
    note("read", $stdin.read)
  end

  # A transaction that is taken back, with a job in it.
  def takes_back
    Order.transaction do
      OddJob.perform_later("nothing", "taken back")
      Order.create!(customer: "taken back")
      raise "taken back"
    end
  end
end
