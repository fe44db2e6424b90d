module example.org/rowqueue

go 1.19

require (
	github.com/go-sql-driver/mysql v1.5.0
	github.com/lib/pq v1.10.7
)
