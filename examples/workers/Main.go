// A worker in Go: reads messages and answers each with a line of JSON.
package main

import (
	"encoding/json"
	"os"
	"strings"
)

type Message struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
}

type Answer struct {
	ID         int64   `json:"id"`
	Error      *string `json:"error,omitempty"`
	RetryAfter float64 `json:"retry_after_seconds,omitempty"`
	Dead       bool    `json:"dead,omitempty"`
}

func handle(message Message, answer *Answer) {
	if never := "can never succeed"; strings.HasPrefix(message.Body, "dead") {
		answer.Error, answer.Dead = &never, true
	} else if later := "not now"; strings.HasPrefix(message.Body, "fail") {
		answer.Error, answer.RetryAfter = &later, 60
	}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for message := (Message{}); in.Decode(&message) == nil; message = (Message{}) {
		answer := Answer{ID: message.ID}
		handle(message, &answer)
		if out.Encode(answer) != nil {
			return
		}
	}
}
