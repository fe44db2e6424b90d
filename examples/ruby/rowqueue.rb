# frozen_string_literal: true

# A producer and a consumer in Ruby, on PostgreSQL, MySQL and MariaDB. Copy it and replace `handle` and `send_all`.
#
#   apt-get install ruby ruby-pg ruby-mysql2
#   DATABASE_URL=postgresql://user:password@host/shop ruby rowqueue.rb send TYPE BODY…
#   DATABASE_URL=mysql://user:password@host/shop      ruby rowqueue.rb consume TYPE
require "digest"
require "json"
require "uri"

SIZE = Integer(ENV.fetch("BATCH_SIZE", "20"))
LEASE_SECONDS = Integer(ENV.fetch("LEASE_SECONDS", "60"))

# The numbered errors of the contract, such as 50002 invalid_argument.
class QueueError < StandardError
  attr_reader :number

  def initialize(number, message)
    @number = number
    super("#{number} #{message}")
  end
end

LeaseLost = Class.new(QueueError)
# A handler raises it to dead-letter its message.
Dead = Class.new(StandardError)
# A deadlock, a lock timeout or a serialization failure: the transaction was rolled back and must be repeated.
Conflict = Class.new(StandardError)

# Common to both databases. `call` returns the rows of a procedure; all its arguments are given.
class Database
  def self.connect(url)
    uri = URI(url)
    (uri.scheme.start_with?("postgres") ? PostgreSQL : MySQL).new(uri)
  end

  def repeated
    tries ||= 0
    yield
  rescue Conflict
    raise if (tries += 1) == 10

    sleep(rand * 0.05 * tries)
    retry
  end

  def transaction
    repeated do
      execute("BEGIN")
      yield
      execute("COMMIT")
    rescue StandardError
      execute("ROLLBACK")
      raise
    end
  end

  private

  def translated(error, number)
    raise Conflict, error.message if self.class::CONFLICTS.include?(number)
    raise error unless number.to_s.match?(/\A500\d\d\z/)

    text = error.message.lines.first.chomp.delete_prefix("ERROR:  ")
    raise (number.to_i == 50_008 ? LeaseLost : QueueError).new(number.to_i, text)
  end
end

# Rows come from functions, and LISTEN wakes.
class PostgreSQL < Database
  CONFLICTS = %w[40001 40P01].freeze

  def initialize(uri)
    super()
    require "pg"
    @connection = PG.connect(uri.to_s)
    integers = PG::TypeMapByOid.new # they are read as texts otherwise
    [20, 21, 23].each { |oid| integers.add_coder(PG::TextDecoder::Integer.new(oid: oid)) }
    @connection.type_map_for_results = integers
  end

  def call(procedure, *values)
    places = values.each_index.map { |i| "$#{i + 1}" }.join(", ")
    execute("SELECT * FROM mq.#{procedure}(#{places})", *values)
  end

  def execute(sql, *values)
    @connection.exec_params(sql, values).to_a
  rescue PG::Error => e
    translated(e, e.result&.error_field(PG::Result::PG_DIAG_SQLSTATE))
  end

  def insert_order(body) = execute("INSERT INTO orders (body) VALUES ($1)", body)

  def listen(type) = execute("LISTEN mq_#{Digest::MD5.hexdigest(type)}")

  # Returns when a message may be there, after two seconds at most. 0: ask senders to notify.
  def wait(type)
    @connection.wait_for_notify(2) if call("wait_for_message", type, 0).first["ready"].zero?
  end
end

# MySQL and MariaDB: rows come from CALL, and the server waits.
class MySQL < Database
  CONFLICTS = [1213, 1205, 1020, 1180, 3101].freeze

  def initialize(uri)
    super()
    require "mysql2"
    user, password = [uri.user, uri.password].map { |part| part && URI::DEFAULT_PARSER.unescape(part) }
    @connection = Mysql2::Client.new(
      host: uri.hostname, port: uri.port || 3306, username: user, password: password, database: uri.path.delete_prefix("/"),
      encoding: "utf8mb4", database_timezone: :utc
    )
    execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
  end

  def call(procedure, *values) = execute("CALL mq_#{procedure}(#{values.map { |value| quoted(value) }.join(', ')})")

  # No prepared statement: with one, this driver loses the errors that come after the rows.
  def execute(sql)
    rows = @connection.query(sql).to_a
    @connection.store_result while @connection.next_result # an error after the rows is reported only at the end
    rows
  rescue Mysql2::Error => e
    translated(e, e.error_number)
  end

  def insert_order(body) = execute("INSERT INTO orders (body) VALUES (#{quoted(body)})")

  def listen(_type) = nil

  def wait(type) = call("wait_for_message", type, 2)

  private

  def quoted(value)
    case value
    when nil then "NULL"
    when Integer then value.to_s
    else "'#{@connection.escape(value)}'"
    end
  end
end

# The order and the message about it, in one transaction: both are there or neither.
def send_all(database, type, bodies)
  database.transaction do
    bodies.each do |body|
      database.insert_order(body)
      database.call("send", type, body)
    end
  end
end

def handle(id, body, attempt)
  raise body.delete_prefix("raise ") if body.start_with?("raise ")
  raise "not yet" if body == "retry" && attempt == 1
  raise Dead, "no such address" if body == "dead"

  sleep(4) if body == "slow"
  File.open(ENV.fetch("HANDLED"), "a") { |file| file.write("#{JSON.generate([id, body])}\n") }
end

# A line of finish_batch's list of outcomes, or nil if the message is done.
def outcome(message)
  handle(*message.values_at("id", "body", "attempt"))
  nil
rescue StandardError => e
  text = e.message.encode("UTF-8", invalid: :replace, undef: :replace).scrub.delete("\0") # the databases refuse NUL
  JSON.generate({ "id" => message["id"], "error" => text, "dead" => e.is_a?(Dead) })
end

# Runs the block while a thread with a connection of its own extends the lease.
def holding(keeper, key)
  done = false
  mutex = Mutex.new
  ended = ConditionVariable.new
  thread = Thread.new do
    mutex.synchronize do
      until done || (ended.wait(mutex, LEASE_SECONDS / 3.0) && done)
        begin
          keeper.call("extend_lease", key, nil)
        rescue StandardError => e
          warn e.message
        end
      end
    end
  end
  yield
ensure
  mutex.synchronize { (done = true) && ended.signal }
  thread.join
end

def consume(url, type)
  database, keeper = Array.new(2) { Database.connect(url) }
  stopping = false
  %w[TERM INT].each { |signal| trap(signal) { stopping = true } }
  database.listen(type)
  batch = []
  until stopping && batch.empty?
    if batch.empty?
      batch = database.repeated { database.call("claim_batch", type, SIZE, nil, LEASE_SECONDS) }
      database.wait(type) if batch.empty? && !stopping
      next
    end
    key = batch.first["batch_key"]
    outcomes = holding(keeper, key) { batch.filter_map { |message| outcome(message) } }
    begin
      list = outcomes.empty? ? nil : outcomes.join("\n") # always assigned: a loop's variables keep their values
      batch = database.repeated { database.call("finish_batch", key, list, stopping ? 0 : SIZE) }
    rescue LeaseLost => e
      warn e.message
      batch = []
    end
  end
end

command, type, *bodies = ARGV.map { |argument| argument.dup.force_encoding("UTF-8") }
url = ENV.fetch("DATABASE_URL") { abort "DATABASE_URL must hold the URL of the database" }
begin
  case command
  when "send" then send_all(Database.connect(url), type, bodies)
  when "consume" then consume(url, type)
  else abort "usage: rowqueue.rb send TYPE BODY… | consume TYPE"
  end
rescue QueueError => e
  abort e.message
end
