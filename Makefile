# What people do with a clone. .ci/run is what must hold before anything lands; it does not use make.
.DEFAULT_GOAL := help
.PHONY: help build test race golden fuzz servers check

help: ## these lines
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10
build: ## hamlet and hamlet-lab, into bin
	go build -o bin/ ./cmd/hamlet ./cmd/hamlet-lab
test: ## all tests; the servers they need run in process
	go test ./...
race: ## the race detector where there are goroutines; needs a C compiler
	go test -race -timeout 60m ./stream/... ./state/... ./cmd/...
golden: ## write golden files and scenarios as they are; read the diff
	go test ./cmd/hamlet -run Golden -update-golden && go test ./cmd/internal/service/learner -run Scenarios -rewrite
fuzz: ## 20 seconds of random bytes for each fuzz target
	.ci/fuzz --time 20s
servers: ## real Kafka, NATS and Redis on loopback: eval "$(make -s servers)"; needs Java, Maven, redis-server
	@deploy/servers start --acl
check: ## everything that must hold; on a clean clone, as root, on Debian
	.ci/run
