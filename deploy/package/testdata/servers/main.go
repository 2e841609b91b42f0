// Command servers runs a Kafka and a Redis for tests until its standard input ends. It prints their
// addresses. It is built as a file of hamlet's module: go build -C ../.. deploy/package/testdata/servers/main.go
package main

import (
	"fmt"
	"io"
	"os"

	"hamlet/stream/servertest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	kafka, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		return err
	}
	defer kafka.Close()
	redis, err := servertest.StartRedis(servertest.RedisOptions{})
	if err != nil {
		return err
	}
	defer redis.Close()
	fmt.Println(kafka.Addr(), redis.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
