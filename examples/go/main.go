// A producer and a consumer in Go, on PostgreSQL, MySQL and MariaDB. Copy it and replace handle and sendAll.
//
//	go build -o rowqueue .
//	DATABASE_URL=postgresql://user:password@host/shop ./rowqueue send TYPE BODY…
//	DATABASE_URL=mysql://user:password@host/shop      ./rowqueue consume TYPE
package main

import (
	"context"
	"crypto/md5"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
)

var (
	size  = number("BATCH_SIZE", 20)
	lease = time.Duration(number("LEASE_SECONDS", 60)) * time.Second
)

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// QueueError is a numbered error of the contract, such as 50002 invalid_argument.
type QueueError struct {
	Number  int
	Message string
}

func (e *QueueError) Error() string { return fmt.Sprintf("%d %s", e.Number, e.Message) }

// Dead is what a handler returns to dead-letter its message.
type Dead struct{ Reason string }

func (e *Dead) Error() string { return e.Reason }

// errConflict: a deadlock, a lock timeout or a serialization failure has rolled the transaction back.
var errConflict = errors.New("conflict")

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
}

type queue struct {
	db       *sql.DB
	postgres bool
	address  string
}

func open(address string) (*queue, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	q := &queue{postgres: strings.HasPrefix(u.Scheme, "postgres")}
	if q.postgres {
		// Without sslmode lib/pq demands TLS.
		if parameters := u.Query(); !parameters.Has("sslmode") {
			parameters.Set("sslmode", "disable")
			u.RawQuery = parameters.Encode()
		}
		q.address = u.String()
		q.db, err = sql.Open("postgres", q.address)
		return q, err
	}
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.InterpolateParams = true // one round trip per call, no prepared statement
	if u.Port() == "" {
		config.Addr += ":3306"
	}
	q.db, err = sql.Open("mysql", config.FormatDSN())
	return q, err
}

// call returns the rows of a procedure, whose arguments are all given.
func (q *queue) call(r querier, procedure string, values ...any) (result []map[string]string, err error) {
	places := make([]string, len(values))
	for i := range places {
		places[i] = "?"
		if q.postgres {
			places[i] = "$" + strconv.Itoa(i+1)
		}
	}
	text := fmt.Sprintf("CALL mq_%s(%s)", procedure, strings.Join(places, ", "))
	if q.postgres {
		text = fmt.Sprintf("SELECT * FROM mq.%s(%s)", procedure, strings.Join(places, ", "))
	}
	rows, err := r.Query(text, values...)
	if err != nil {
		return nil, translated(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, pointers := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range cells {
		pointers[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = cells[i].String
		}
		result = append(result, row)
	}
	if err := rows.Err(); err != nil {
		return nil, translated(err)
	}
	return result, translated(rows.Close()) // on MySQL and MariaDB an error after the rows is reported only here
}

func translated(err error) error {
	var number, text string
	var pqError *pq.Error
	var mysqlError *mysql.MySQLError
	switch {
	case errors.As(err, &pqError):
		number, text = string(pqError.Code), pqError.Message
	case errors.As(err, &mysqlError):
		number, text = strconv.Itoa(int(mysqlError.Number)), mysqlError.Message
	default:
		return err
	}
	switch number {
	case "40001", "40P01", "1213", "1205", "1020", "1180", "3101":
		return fmt.Errorf("%w: %s", errConflict, text)
	}
	if n, _ := strconv.Atoi(number); len(number) == 5 && n > 50000 && n < 50100 {
		return &QueueError{n, text}
	}
	return err
}

// repeated runs a function again after a conflict rolled it back.
func repeated(work func() error) (err error) {
	for try := 1; try <= 10; try++ {
		if err = work(); !errors.Is(err, errConflict) {
			return err
		}
		time.Sleep(time.Duration(rand.Intn(50*try)) * time.Millisecond)
	}
	return err
}

// sendAll stores the orders and the messages about them in one transaction: both are there or neither.
func (q *queue) sendAll(kind string, bodies []string) error {
	insert := "INSERT INTO orders (body) VALUES (?)"
	if q.postgres {
		insert = "INSERT INTO orders (body) VALUES ($1)"
	}
	return repeated(func() error {
		tx, err := q.db.Begin()
		if err != nil {
			return translated(err)
		}
		defer tx.Rollback()
		for _, body := range bodies {
			if _, err := tx.Exec(insert, body); err != nil {
				return translated(err)
			}
			if _, err := q.call(tx, "send", kind, body); err != nil {
				return err
			}
		}
		return translated(tx.Commit())
	})
}

func handle(id, attempt int64, body string) error {
	switch {
	case strings.HasPrefix(body, "raise "):
		return errors.New(strings.TrimPrefix(body, "raise "))
	case body == "retry" && attempt == 1:
		return errors.New("not yet")
	case body == "dead":
		return &Dead{"no such address"}
	case body == "slow":
		time.Sleep(4 * time.Second)
	}
	line, err := json.Marshal([]any{id, body})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv("HANDLED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}

// handleAll returns finish_batch's list of outcomes, a line for each message that failed.
func handleAll(batch []map[string]string) (list any) {
	var outcomes []string
	for _, m := range batch {
		id, _ := strconv.ParseInt(m["id"], 10, 64)
		attempt, _ := strconv.ParseInt(m["attempt"], 10, 64)
		err := handle(id, attempt, m["body"])
		if err == nil {
			continue
		}
		// The databases refuse NUL. Marshal replaces what is not UTF-8.
		outcome := map[string]any{"id": id, "error": strings.ReplaceAll(err.Error(), "\x00", "")}
		if dead := (*Dead)(nil); errors.As(err, &dead) {
			outcome["dead"] = 1
		}
		line, _ := json.Marshal(outcome)
		outcomes = append(outcomes, string(line))
	}
	if outcomes == nil {
		return nil
	}
	return strings.Join(outcomes, "\n")
}

// holding runs work while another goroutine, on another connection of the pool, extends the lease.
func (q *queue) holding(key string, work func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if _, err := q.call(q.db, "extend_lease", key, nil); err != nil {
					log.Print(err)
				}
			}
		}
	}()
	work()
	close(done)
	<-ended
}

func (q *queue) consume(ctx context.Context, kind string) error {
	wait, err := q.waiter(ctx, kind)
	if err != nil {
		return err
	}
	var batch []map[string]string
	for ctx.Err() == nil || len(batch) > 0 {
		if len(batch) == 0 {
			err := repeated(func() (err error) {
				batch, err = q.call(q.db, "claim_batch", kind, size, nil, int(lease.Seconds()))
				return err
			})
			if err == nil && len(batch) == 0 {
				err = wait()
			}
			if err != nil {
				return err
			}
			continue
		}
		key, list := batch[0]["batch_key"], any(nil)
		q.holding(key, func() { list = handleAll(batch) })
		next := size
		if ctx.Err() != nil {
			next = 0
		}
		err := repeated(func() (err error) {
			batch, err = q.call(q.db, "finish_batch", key, list, next)
			return err
		})
		if lost := (*QueueError)(nil); errors.As(err, &lost) && lost.Number == 50008 {
			log.Print(err)
			batch = nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// waiter returns a function that returns when a message may be there, after two seconds at most.
func (q *queue) waiter(ctx context.Context, kind string) (func() error, error) {
	if !q.postgres {
		return func() error {
			_, err := q.call(q.db, "wait_for_message", kind, 2)
			return err
		}, nil
	}
	listener := pq.NewListener(q.address, time.Second, time.Minute, nil)
	if err := listener.Listen(fmt.Sprintf("mq_%x", md5.Sum([]byte(kind)))); err != nil {
		return nil, err
	}
	return func() error {
		state, err := q.call(q.db, "wait_for_message", kind, 0) // 0: ask senders to notify
		if err != nil || state[0]["ready"] == "1" {
			return err
		}
		select {
		case <-listener.Notify:
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		return nil
	}, nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 || os.Getenv("DATABASE_URL") == "" {
		log.Fatal("usage: DATABASE_URL=… rowqueue send TYPE BODY… | consume TYPE")
	}
	q, err := open(os.Getenv("DATABASE_URL"))
	if err == nil && os.Args[1] == "send" {
		err = q.sendAll(os.Args[2], os.Args[3:])
	} else if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = q.consume(ctx, os.Args[2])
	}
	if err != nil {
		log.Fatal(err)
	}
}
