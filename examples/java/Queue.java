// A producer and a consumer in Java 17, on PostgreSQL, MySQL and MariaDB. Copy it and replace
// `store` and `handle`.
//
//   apt-get install openjdk-17-jdk-headless libpostgresql-jdbc-java libmariadb-java
//   export CLASSPATH=/usr/share/java/postgresql.jar:/usr/share/java/mariadb-java-client.jar
//   DATABASE_URL=postgresql://user:password@host/shop java Queue.java send TYPE BODY…
//   DATABASE_URL=mysql://user:password@host/shop      java Queue.java consume TYPE

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

class Queue {
  static final Map<String, String> SETTINGS = System.getenv();
  static final int SIZE = Integer.parseInt(SETTINGS.getOrDefault("BATCH_SIZE", "20"));
  static final int LEASE_SECONDS = Integer.parseInt(SETTINGS.getOrDefault("LEASE_SECONDS", "60"));

  static volatile boolean stopping;

  // ---- The application's own part ----

  static void store(Database database, String body) throws SQLException {
    var sql = "INSERT INTO orders (body) VALUES (?)";
    try (var insert = database.connection.prepareStatement(sql)) {
      insert.setString(1, body);
      insert.executeUpdate();
    }
  }

  static void handle(Message message) throws Exception {
    if (message.body().startsWith("raise ")) {
      throw new Exception(message.body().substring(6));
    }
    switch (message.body()) {
      case "retry" -> {
        if (message.attempt() == 1) {
          throw new Exception("not yet");
        }
      }
      case "dead" -> throw new DeadException("no such address");
      case "slow" -> Thread.sleep(4000);
      default -> {
        // Done at once.
      }
    }
    var line = "[%d,%s]\n".formatted(message.id(), quoted(message.body()));
    Files.writeString(Path.of(SETTINGS.get("HANDLED")), line, CREATE, APPEND);
  }

  /** Thrown by a handler to dead-letter its message. */
  static class DeadException extends Exception {
    DeadException(String reason) {
      super(reason);
    }
  }

  // ---- The queue ----

  /** One of the contract's numbered errors, such as 50002 invalid_argument. */
  static class QueueException extends RuntimeException {
    final int number;

    QueueException(int number, String text, SQLException cause) {
      super(text, cause);
      this.number = number;
    }
  }

  static class LeaseLostException extends QueueException {
    LeaseLostException(String text, SQLException cause) {
      super(50008, text, cause);
    }
  }

  /** The key is a UUID on PostgreSQL and a String elsewhere; it goes back as it came. */
  record Message(long id, String body, int attempt, Object key) {
    static Message of(ResultSet row) throws SQLException {
      var id = row.getLong("id");
      var key = row.getObject("batch_key");
      return new Message(id, row.getString("body"), row.getInt("attempt"), key);
    }
  }

  interface Row<T> {
    T read(ResultSet row) throws SQLException;
  }

  /** One connection, for one thread at a time. */
  abstract static class Database {
    final Connection connection;

    Database(Connection connection) {
      this.connection = connection;
    }

    static Database connect(String address) throws SQLException {
      var uri = URI.create(address);
      var postgresql = uri.getScheme().startsWith("postgres");
      var login = Objects.requireNonNullElse(uri.getRawUserInfo(), "").split(":", 2);
      var properties = new Properties();
      properties.setProperty("user", decoded(login[0]));
      properties.setProperty("password", login.length == 2 ? decoded(login[1]) : "");
      var scheme = postgresql ? "jdbc:postgresql://" : "jdbc:mariadb://";
      // What follows the login has the same form in both URLs.
      var rest = address.substring(address.indexOf("://") + 3).replaceFirst("^[^/@]*@", "");
      var connection = DriverManager.getConnection(scheme + rest, properties);
      return postgresql ? new PostgreSql(connection) : new MySql(connection);
    }

    private static String decoded(String part) {
      return URLDecoder.decode(part.replace("+", "%2B"), UTF_8);
    }

    /** The rows of a procedure, whose arguments are all given; null is the default. */
    <T> List<T> call(Row<T> row, String procedure, Object... values) throws SQLException {
      var places = String.join(", ", Collections.nCopies(values.length, "?"));
      try (var statement = connection.prepareStatement(statement(procedure, places))) {
        for (int i = 0; i < values.length; i++) {
          statement.setObject(i + 1, values[i]);
        }
        var result = new ArrayList<T>();
        statement.execute();
        try (var rows = statement.getResultSet()) {
          while (rows.next()) {
            result.add(row.read(rows));
          }
        }
        // An error after the rows is reported only at the end.
        while (statement.getMoreResults() || statement.getUpdateCount() != -1) {}
        return result;
      } catch (SQLException error) {
        throw translated(error);
      }
    }

    /** Claims a batch, or finishes one and claims the next. */
    List<Message> batch(String procedure, Object... values) throws Exception {
      return repeated(() -> call(Message::of, procedure, values));
    }

    private SQLException translated(SQLException error) {
      var number = number(error);
      if (!number.matches("500\\d\\d")) {
        return error;
      }
      throw number.equals("50008")
          ? new LeaseLostException(text(error), error)
          : new QueueException(Integer.parseInt(number), text(error), error);
    }

    /** Repeats work that a deadlock, a lock timeout or a serialization failure rolled back. */
    <T> T repeated(Callable<T> work) throws Exception {
      for (int attempt = 1; ; attempt++) {
        try {
          return work.call();
        } catch (SQLException error) {
          if (attempt == 10 || !conflicts().contains(number(error))) {
            throw error;
          }
          Thread.sleep(ThreadLocalRandom.current().nextInt(50 * attempt));
        }
      }
    }

    <T> T transaction(Callable<T> work) throws Exception {
      return repeated(
          () -> {
            connection.setAutoCommit(false);
            try {
              var result = work.call();
              connection.commit();
              return result;
            } catch (Exception error) {
              connection.rollback();
              throw error;
            } finally {
              connection.setAutoCommit(true);
            }
          });
    }

    abstract String statement(String procedure, String places);

    abstract String number(SQLException error);

    abstract String text(SQLException error);

    abstract Set<String> conflicts();

    abstract void listen(String type) throws Exception;

    /** Returns when there may be a message, after two seconds at most. */
    abstract void waitForMessage(String type) throws SQLException;
  }

  static class PostgreSql extends Database {
    PostgreSql(Connection connection) {
      super(connection);
    }

    @Override
    String statement(String procedure, String places) {
      return "SELECT * FROM mq." + procedure + "(" + places + ")";
    }

    @Override
    String number(SQLException error) {
      return Objects.requireNonNullElse(error.getSQLState(), "");
    }

    @Override
    String text(SQLException error) {
      return ((PSQLException) error).getServerErrorMessage().getMessage();
    }

    @Override
    Set<String> conflicts() {
      return Set.of("40001", "40P01");
    }

    @Override
    void listen(String type) throws Exception {
      var hash = MessageDigest.getInstance("MD5").digest(type.getBytes(UTF_8));
      try (var statement = connection.createStatement()) {
        statement.execute("LISTEN mq_" + HexFormat.of().formatHex(hash));
      }
    }

    @Override
    void waitForMessage(String type) throws SQLException {
      // 0: ask senders to notify.
      if (call(row -> row.getInt("ready"), "wait_for_message", type, 0).get(0) == 0) {
        connection.unwrap(PGConnection.class).getNotifications(2000);
      }
    }
  }

  static class MySql extends Database {
    MySql(Connection connection) throws SQLException {
      super(connection);
      // For claims in your own transactions.
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    }

    @Override
    String statement(String procedure, String places) {
      return "CALL mq_" + procedure + "(" + places + ")";
    }

    /** MariaDB's driver 2.7 reads the number into 16 bits with a sign: 50002 is -15534. */
    @Override
    String number(SQLException error) {
      return String.valueOf(error.getErrorCode() & 0xFFFF);
    }

    @Override
    String text(SQLException error) {
      return error.getMessage().replaceFirst("^\\(conn=\\d+\\) ", "");
    }

    @Override
    Set<String> conflicts() {
      return Set.of("1213", "1205", "1020", "1180", "3101");
    }

    @Override
    void listen(String type) {}

    @Override
    void waitForMessage(String type) throws SQLException {
      call(row -> null, "wait_for_message", type, 2);
    }
  }

  /** The orders and the messages about them, in one transaction: all are there or none. */
  static void send(Database database, String type, List<String> bodies) throws Exception {
    database.transaction(
        () -> {
          for (var body : bodies) {
            store(database, body);
            database.call(row -> row.getLong(1), "send", type, body);
          }
          return null;
        });
  }

  static void consume(Database database, Database keeper, String type) throws Exception {
    var timer = Executors.newSingleThreadScheduledExecutor();
    database.listen(type);
    while (!stopping) {
      var batch = database.batch("claim_batch", type, SIZE, null, LEASE_SECONDS);
      if (batch.isEmpty()) {
        database.waitForMessage(type);
      }
      while (!batch.isEmpty()) {
        var key = batch.get(0).key();
        var outcomes = handleAll(batch, key, keeper, timer);
        try {
          batch = database.batch("finish_batch", key, outcomes, stopping ? 0 : SIZE);
        } catch (LeaseLostException error) {
          log(error);
          batch = List.of(); // other consumers have its messages
        }
      }
    }
  }

  /** Handles a batch while another thread, with a connection of its own, extends the lease. */
  static String handleAll(
      List<Message> batch, Object key, Database keeper, ScheduledExecutorService timer) {
    var period = LEASE_SECONDS * 1000L / 3;
    var heartbeat =
        timer.scheduleWithFixedDelay(() -> extend(keeper, key), period, period, MILLISECONDS);
    try {
      var outcomes = batch.stream().map(Queue::outcome).filter(Objects::nonNull).toList();
      return outcomes.isEmpty() ? null : String.join("\n", outcomes);
    } finally {
      heartbeat.cancel(false);
    }
  }

  static void extend(Database keeper, Object key) {
    try {
      keeper.call(row -> null, "extend_lease", key, null);
    } catch (Exception error) {
      log(error); // thrown, it would stop the timer
    }
  }

  /** A line of finish_batch's list of outcomes, or null if the message is done. */
  static String outcome(Message message) {
    try {
      handle(message);
      return null;
    } catch (Exception error) {
      log(error);
      var dead = error instanceof DeadException;
      var text = Objects.requireNonNullElse(error.getMessage(), error.toString());
      return "{\"id\":%d,\"error\":%s,\"dead\":%b}".formatted(message.id(), quoted(text), dead);
    }
  }

  /** As a JSON string. Jackson or Gson can do this too. */
  static String quoted(String text) {
    // Without what the databases refuse: NUL, and half a surrogate pair.
    var storable = new String(text.replace("\0", "").getBytes(UTF_8), UTF_8);
    var result = new StringBuilder("\"");
    for (var c : storable.toCharArray()) {
      if (c < ' ') {
        result.append("\\u%04x".formatted((int) c));
      } else {
        result.append(c == '"' || c == '\\' ? "\\" : "").append(c);
      }
    }
    return result.append('"').toString();
  }

  static void log(Exception error) {
    System.err.println(error instanceof QueueException e ? e.number + " " + e.getMessage() : error);
  }

  /** On SIGTERM and SIGINT the batch in hand is finished, and no other is claimed. */
  static void stopOnSignals() {
    var main = Thread.currentThread();
    Runnable stop =
        () -> {
          stopping = true;
          try {
            main.join();
          } catch (InterruptedException error) {
            log(error);
          }
        };
    Runtime.getRuntime().addShutdownHook(new Thread(stop));
  }

  public static void main(String[] args) {
    var url = SETTINGS.get("DATABASE_URL");
    if (url == null || args.length < 2 || !Set.of("send", "consume").contains(args[0])) {
      System.err.println("usage: DATABASE_URL=… java Queue.java send TYPE BODY… | consume TYPE");
      System.exit(2);
    }
    var status = 0;
    try {
      var database = Database.connect(url);
      if (args[0].equals("send")) {
        send(database, args[1], List.of(args).subList(2, args.length));
      } else {
        stopOnSignals();
        consume(database, Database.connect(url), args[1]);
      }
      database.connection.close();
    } catch (Exception error) {
      log(error);
      status = 1;
    }
    // `exit` would wait for the shutdown hook, which waits for this thread.
    Runtime.getRuntime().halt(status);
  }
}
