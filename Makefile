# Needs Go and make, nothing else. Without cgo the binary needs no C compiler either.
export CGO_ENABLED ?= 0

BIN  := bin/shoal
LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 20s
BENCH    ?= -out bench/results

# How tests are run. CI tells and bounds what each package takes (.ci/gotest).
GO_TEST ?= go test
# What runs vet over everything need not run it again for each package.
VETTED := -vet=off
# -short leaves to the night what takes long and seldom finds anything.
SHORT ?=

# The race detector needs a C compiler. It runs where there is one, over the packages whose goroutines share memory, and not
# over those of one goroutine: the simulation, commands, and sitemaps. What it tests is not tested again without it, but for what looks for tools.
# SQLite is C that was translated: only what is ours is watched, in a third of the time.
RACE     := CGO_ENABLED=1 $(GO_TEST) $(VETTED) -race -gcflags=modernc.org/...=-race=false -short -timeout 40m
CC_FOUND := $(shell command -v $$(go env CC))
RACY     := /(cmd|controlplane|fetcher|ingest|billing|apiserver|pkg/stream|pkg/cache|pkg/blobstore|pkg/egress|pkg/rowstore|pkg/telemetry|pkg/turns)(/|$$)
SERIAL   := /(controlplane/internal/simulation|controlplane/internal/fsm|apiserver/internal/sitemap)$$
TOOLS    := ./apiserver ./apiserver/portal ./fetcher ./fetcher/internal/chromium ./fetcher/internal/web
TOOLED   := 'Browser|OtherClients'
# Tests that do one thing after the other, and the guards, which ask a fetcher for one forbidden address after the other. They
# compute: the race detector takes four times as long over them, and sees what it sees in the tests beside them.
LONE     := ./apiserver ./apiserver/agents ./apiserver/api/runs ./apiserver/api/uploads ./apiserver/internal/export ./apiserver/internal/operation ./apiserver/internal/reconcile ./cmd/shoal ./cmd/shoal/internal/trail ./controlplane/internal/leadership ./controlplane/internal/state ./fetcher ./fetcher/internal/llm ./ingest ./pkg/rowstore/clickhouse ./pkg/rowstore/sqlite
LONELY   := '^Test(TheDescriptionIsEnforced|EveryListIsBounded|EveryArgumentOfEveryTool|ContactsRefuses|RunOfAHugeGroup|KeyColumns|SheetIsBounded|ItemsTakeNoMemory|Months|MovementsAreBounded|LongLedgersAreWalked|ReferenceIsAsBuilt|HelpTeaches|ConfigIsStrict|CallFlags|OpenIDFlags|ErrorsHaveTheirExitCodes|EachDamageIsNamed|Restores|ManyDamages|DueAreFoundByIndex|YearOfSchedules|DamagedSnapshotsAreRefused|RecipesStandOnce|Guard.*|Trap.*|SchemaOfTheNextRelease|ProtectedUploadIsKilled|MergeIsKilled|MatchIsKilled|MatchIsKilledInItsTurns|ImportIsKilledAnywhere|Sorter)$$'
# Tests of quick packages that are not quick: a commit's change is seldom what they find. .ci/run has them all.
LONG     := '^Test(TheDescriptionIsEnforced|EveryListIsBounded|EveryArgumentOfEveryTool|EveryTypeOnHostilePages|HostileFiles|HostileOrigins.*|SheetIsBounded|RunOfAHugeGroup|EachDamageIsNamed|DueAreFoundByIndex|Guard.*|Trap.*)$$'
# Elections of the control plane's tests are held against the clock of the machine: nothing beside them takes it away.
ELECTING := ./controlplane
# Short runs leave to the night the race detector for the resources of the API, the agents' gateway and the binary: they share
# memory by what lies below them. Linking most takes longer than their tests.
CALM     := $(if $(SHORT),/(apiserver/api/|apiserver/agents$$|cmd/shoal$$),^$$)
# Those that take longest come first: nothing waits for them alone in the end.
RACED     = ./ingest $(if $(SHORT),,./apiserver/api/data ./apiserver/api/runs) ./pkg/rowstore/sqlite \
  $$(go list ./... | grep -E '$(RACY)' | grep -vE '$(SERIAL)|$(CALM)' | grep -v '/controlplane$$')
UNRACED   = ./e2e $$(go list ./... | grep -E '$(SERIAL)|$(CALM)'; go list ./... | grep -vE '$(RACY)')

.PHONY: run build test whole bare tooled check race elections lone raced browser bounds oracle bench hot peers bench-peers simulation guards exactness crash crash-stores archive archive-stores years scale scale-stores cluster stores endtoend faults failover cluster-scale watched upgrade capacity deployment alerts describe conformance clients clients-test readback lint draws fuzz nightly clean

## run: build, serve, and run the demo before your eyes (data in ./data, Ctrl-C stops)
run: build
	@exec $(BIN) demo

build:
	go build -o $(BIN) ./cmd/shoal

## test: vet and all tests, under the race detector where there is a C compiler; the last line says what was left out for
## want of a tool
TESTED ?= ./...
VET    ?= go vet ./...
test:
	$(VET)
ifneq ($(CC_FOUND),)
	$(MAKE) race
	$(GO_TEST) $(VETTED) $(SHORT) -timeout 40m $(UNRACED)
else
	$(GO_TEST) $(VETTED) $(SHORT) -timeout 40m $(TESTED)
endif
	@echo "left out: $(or $(LEFT_OUT),nothing)"

## whole: all tests as they are where there is no race detector: none of them short. Services that are there belong to make cluster:
## its tests stop them
whole:
	env -u KAFKA_BROKERS -u REDIS_ADDR -u CLICKHOUSE_URL -u S3_URL -u STRIPE_URL -u SMTP_ADDR -u OIDC_ISSUER -u CRASH_SHARE \
	  $(GO_TEST) $(VETTED) -timeout 1h ./...

## bare: make test as on a fresh machine, in a clone, with nothing but Go, git and make
bare:
	.ci/bare make test

# The tests of the race detector's packages that look for tools, where there may be none. The service, too, looks for a browser
# when it starts: not where cmd starts it in tests, but in those of e2e.
tooled:
	$(GO_TEST) $(VETTED) -timeout 40m ./fetcher/internal/chromium
	$(GO_TEST) $(VETTED) -timeout 40m -run $(TOOLED) $(TOOLS)

# What tests look for on PATH, and what is not shown without it. Real services and alert rules have suites of their own.
BROWSERS := chromium chromium-browser google-chrome headless-shell
LEFT_OUT  = $(strip $(if $(CC_FOUND),,the race detector (no C compiler);) \
  $(if $(strip $(foreach name,$(BROWSERS),$(shell command -v $(name)))),,tier render and the portal (no chromium);) \
  $(if $(shell command -v ip),,networks that are cut (no ip);) \
  $(if $(shell command -v curl),,the curl example (no curl);) \
  $(if $(shell command -v python3),,the Python example (no python3);) \
  $(if $(shell command -v promtool),,alert rules (no promtool, make alerts);) \
  $(if $(shell command -v npm),,the generated clients and agents' conformance (no npm, make nightly);) \
  $(if $(SHOAL_CLUSTER_SUITE),,real services (make cluster);))

## check: what to run before each commit: vet and the quick tests, under 3 minutes on 2 cores once built
check:
	go vet ./...
	go test $(VETTED) -short -p 4 -timeout 5m -skip $(LONG) $$(go list ./... | grep -vE '/(e2e|bench)(/|$$)')

## race: what shares memory, under the race detector, and the tests of these packages that share none without it
race: elections lone raced

elections:
	$(RACE) $(ELECTING)

lone:
	$(GO_TEST) $(VETTED) -short -timeout 40m -run $(LONELY) $$(go list $(LONE) | grep -vE '$(CALM)')

raced:
	$(RACE) -skip $(LONELY) $(RACED)

AXE := e2e/.axe/node_modules/axe-core/axe.min.js
## browser: tier render and the portal in a real Chromium, which there has to be. axe-core judges the portal's pages;
## e2e/axe/install puts it into e2e/.axe (Node). Then, alone, when the portal is drawn
browser:
	e2e/axe/install
	SHOAL_BROWSER_SUITE=1 $(GO_TEST) -timeout 20m -run 'Browser|TestTiers' ./fetcher/...
	SHOAL_BROWSER_SUITE=1 $(GO_TEST) -timeout 40m -run 'Browser|TestTiers|TestPortal' ./e2e -axe $(CURDIR)/$(AXE)
	SHOAL_BROWSER_SUITE=1 go test -count=1 -timeout 5m -run TestPortalPaintsSoon -v ./e2e -paint-bound 1s

## bounds: what hostile pages and origins may take of time and memory, alone on the machine (a browser where there is one), and
## what sums of the state take of a leader at 3 GB
bounds:
	SHOAL_BOUNDS_SUITE=1 go test -p 1 -count=1 -timeout 1h -run 'OnHostilePages|TestCostGrows|TestHostileOrigins' ./pkg/extract ./fetcher/internal/web
	go test ./controlplane/internal/state -run '^$$' -bench LargeState -state-mb 3072 -timeout 1h

## oracle: 10,000 XPath expressions over saved pages as libxml2 evaluates them (Python with lxml, which it installs)
oracle:
	test -x bin/lxml/bin/python3 || python3 -m venv bin/lxml
	bin/lxml/bin/pip install --quiet --disable-pip-version-check lxml==6.1.3
	PATH="$(CURDIR)/bin/lxml/bin:$$PATH" go test -tags oracle -count=1 -run XPathOracle ./pkg/extract/internal/dom -timeout 2h \
	  -oracle.pages $$(go list -m -f '{{.Dir}}' codeberg.org/readeck/go-readability/v2) -oracle.seed $$(git rev-list --count HEAD)

## bench: measure pages per CPU-second beside the peers, and write the result under bench/results (bench/README.md)
bench:
	go run ./bench $(BENCH)

## hot: the benchmarks of hot functions, once each; BENCHTIME=1s COUNT=10 for what benchstat compares
BENCHTIME ?= 1x
COUNT     ?= 1
HOT := go test -run '^$$' -bench . -benchtime $(BENCHTIME) -count $(COUNT) -timeout 2h
hot:
	$(HOT) $$(grep -rl --include='*_test.go' '^func Benchmark' . | grep -v /clickhouse/ | xargs -n 1 dirname | sort -u)
	$(HOT) ./pkg/rowstore/clickhouse -bench-rows 20000

## peers: install the peers that are no Go packages of ours into bench/.peers (which of them: PEERS="go rust node python java")
peers:
	bench/peers/install $(PEERS)

## bench-peers: install all peers and measure them beside us, when reading may stop early and when it may not
bench-peers: peers
	go run ./bench $(BENCH)
	go run ./bench -absent $(BENCH)

## simulation: the protocol under 100,000 seeds of faults, a year of 10,000 schedules, and what 100,000 scrapers take
simulation:
	go test ./controlplane/internal/simulation -seeds 100000 -v -timeout 4h
	go test ./controlplane/internal/leadership -run YearOfSchedules -schedules 10000 -days 365 -v -timeout 3h
	go test ./controlplane/internal/fsm -run TestScrapersAreSmall -scrapers 100000 -v -timeout 30m

## guards: every spelling of every forbidden address at every way out, by a browser where there is one (make test: each fourth; short runs: each twelfth)
guards:
	SHOAL_GUARD_SUITE=1 go test ./fetcher ./e2e -run 'Guard|Trap' -v -timeout 30m

## exactness: 100,000 addresses on 1,000 hosts, recounted page by page
exactness:
	go test ./e2e -run 'TestExactness' -exactness -v -timeout 45m

## crash: kills at every named point, and losses of the log, SEEDS times each
SEEDS ?= 25
crash:
	go test ./e2e -run 'TestCrashes|TestTheLog|TestRefetches' -crash-seeds $(SEEDS) -loss-seeds $(SEEDS) -v -timeout 4h

## archive: the end-to-end suite while history leaves the state at once
archive:
	go test -count=1 -timeout 40m ./e2e -archive-at-once

## archive-stores: the same of the scenarios on ClickHouse; services as in make cluster
archive-stores:
	$(CRASHES) 'TestScenarios$$' -archive-at-once

## years: a hundredth of the runs of shoal bench history, judged by its aims; on ClickHouse, too, if CLICKHOUSE_URL names one
years:
	go test ./bench/measure -count=1 -run TestYearsOfUse -years -v -timeout 1h

## scale: a million addresses, a site of a million links, files of 200 MB, slow hosts, an idle process
scale:
	go test ./e2e -run 'TestScale|TestUploadsTakeLittle|TestSlowHosts|TestIdle' -scale -v -timeout 150m

## cluster: the suites on real Kafka, Redis, ClickHouse, S3, stripe-mock, mail server and OpenID Connect issuer, found by
## KAFKA_BROKERS, REDIS_ADDR, CLICKHOUSE_URL, S3_URL, STRIPE_URL, SMTP_ADDR with SMTP_MAILDIR and SMTP_CA, and OIDC_ISSUER (the
## example provider of zitadel/oidc), stopped and started by the scripts in SHOAL_SERVICES; Linux, root, iproute2
CLUSTER := SHOAL_CLUSTER_SUITE=1 $(GO_TEST) $(VETTED) $(SHORT) -p 1 -count=1 -timeout 50m
cluster: stores endtoend

# What the API asks the row store about rows: tests that run on both.
OF_ROWS := '^Test(Export|ExportsGoOn|Download|KeptExports|KeptExportsOfLatestRuns|PutCategory|ReadByCategory|ReadsOfASharedGroup|SharedScraperThatWasMoved|Receipt|ReceiptGoesWithItsRow|DeleteRun|DeleteRunUnderWay|DeleteWithData|DeleteGroup|CursorsOfHeldRuns|CursorsOfChangedRetention|CursorsOfExpiringRuns|CursorsOfPassedOverRuns|CursorsOfRetainedRuns|CursorsOfDeletedRows|CursorsOfRunsOfDeletedOnes|ReadByCursor|Group)$$'

# What one service holds, by itself: its tests mostly wait for it. Short runs do not measure a cluster, and need no mail server
# and no issuer.
stores:
	$(CLUSTER) -run 'TestRedis|ByRedis|OfRedis|ServersShare' ./pkg/cache ./apiserver
	$(CLUSTER) -run 'S3|OfACluster' ./pkg/blobstore ./controlplane
	$(CLUSTER) -run StripeMock ./apiserver/payment/stripe
	$(if $(SHORT),,$(CLUSTER) -run 'ARealMailServer|ARealIssuer' ./apiserver/internal/mailer ./apiserver/internal/oidc)
	$(CLUSTER) -run $(OF_ROWS) ./apiserver/api/data
	$(CLUSTER) -run 'TestLargest(Site|Harvest)$$/^clickhouse$$' ./apiserver/api/sites ./apiserver/internal/harvest
	$(if $(SHORT),,$(CLUSTER) -run TestCluster ./bench/measure)
	$(CLUSTER) -p 2 ./pkg/stream/kafka ./pkg/rowstore/clickhouse # each stops its own service alone

# Long tests of the cluster that take turns in short runs: a third of them has each commit, chosen as the kill points are.
TURN_1 := RollingUpgrade
TURN_2 := PlannedMoves|HostsOfALostFetcherMove
TURN_3 := StalledRowStore|Histories
empty  :=
turns   = $(subst $(empty) $(empty),|,$(strip $(foreach turn,$(filter-out $(firstword $(subst /, ,$(CRASH_SHARE))),1 2 3),$(TURN_$(turn)))))
NOT_NOW = $(if $(and $(SHORT),$(CRASH_SHARE)),-skip '^Test($(turns))$$')

# Crashes of all that the row store has a part in, and what it makes of rows. What copies data directories is for SQLite alone.
CRASHES := $(CLUSTER) ./e2e -clickhouse $(CLICKHOUSE_URL) -run
# Short runs share their machine, and leave to the night that hosts of a lost fetcher move within 15 s.
STAND_STILL := $(if $(SHORT),,-stand-still 15s)
endtoend:
	$(CLUSTER) ./testkit/netns
	$(CLUSTER) $(NOT_NOW) ./e2e/cluster $(STAND_STILL)
	$(CRASHES) 'Test(ResultsAreThoseOfTheGolden|CrashesOf(Uploads|Retention))$$'

## crash-stores: kills on ClickHouse in what make cluster leaves out of it; services as there
crash-stores:
	$(CRASHES) 'TestCrashes$$'
	$(CRASHES) 'TestCrashesOf(Merges|Matches|ProtectedUploads|ReExtracts|KeptBodies|ChangeAlerts|Quarantine)$$'
	$(CRASHES) 'TestCrashesOf(Catalogues|Removal|RunRemoval|GroupRemoval|CustomerRemoval|Sites|ALargeSite|Harvests|Wipes|KeptExports|Starts|Launches)$$'

## scale-stores: the site of a million links of make scale on ClickHouse; services as in make cluster
scale-stores:
	$(CLUSTER) ./e2e -clickhouse $(CLICKHOUSE_URL) -run 'TestScaleOfSites$$' -scale -v -timeout 2h

## faults: the fault matrix, or a share of it (FAULTS=2/8 is each eighth cell from the second), FAULT_SEEDS times each cell,
## with outages of OUTAGE
FAULTS      ?= all
FAULT_SEEDS ?= 1
OUTAGE      ?= 10m
faults:
	SHOAL_CLUSTER_SUITE=1 go test ./e2e/cluster -run TestFaults -faults $(FAULTS) -fault-seeds $(FAULT_SEEDS) -outage $(OUTAGE) -v -timeout 24h

## failover: the time from a leader's kill to the next accepted write, of KILLS kills, with its p99 within FAILOVER, and on disks
## whose writes take 2 s
KILLS    ?= 50
FAILOVER ?= 3s
failover:
	SHOAL_CLUSTER_SUITE=1 go test ./e2e/cluster -run TestFailover -leader-kills $(KILLS) -failover-p99 $(FAILOVER) -v -timeout 1h
	go test ./controlplane -count=3 -run TestLeaderIsElectedOnSlowDisks -slow-writes 2s -v -timeout 30m

## cluster-scale: what more fetchers bring, bound by latency and until the cores are full, to bench/results/fetchers.md
cluster-scale:
	SHOAL_CLUSTER_SUITE=1 go test ./e2e/cluster -run TestScale -scale -scale-results $(CURDIR)/bench/results/fetchers.md -v \
	  -timeout 1h

## watched: every trouble that a real Prometheus has to tell by the alert rules
watched:
	SHOAL_CLUSTER_SUITE=1 go test ./e2e/cluster -run TestAlerts -troubles -v -timeout 1h

## upgrade: an upgrade of the release before that is rolled back, and then goes through
upgrade:
	SHOAL_CLUSTER_SUITE=1 go test ./e2e/cluster -run TestRollingUpgrade -roll-back -v -timeout 1h

## capacity: what a page costs each process, services included, whose pid files are in SERVICE_PIDS
capacity:
	SHOAL_CLUSTER_SUITE=1 go test ./e2e/cluster -run TestCapacity -service-pids $(SERVICE_PIDS) -v -timeout 30m

## deployment: image, compose file, chart and scripts, judged by public tools, which deploy/lint installs (Python)
deployment:
	deploy/lint

## alerts: the alert rules, their tests and the dashboard's queries by promtool (Debian: package prometheus)
alerts:
	@command -v promtool > /dev/null || { echo "promtool is missing: apt-get install prometheus"; exit 1; }
	PROMTOOL=$$(command -v promtool) go test -count=1 ./deploy/monitoring

## describe: the API's description, judged by public tools, which e2e/describe/install puts into e2e/.describe (Node, Python)
describe:
	e2e/describe/install
	SHOAL_DESCRIBE_SUITE=1 go test ./e2e -count=1 -run TestDescription -v -timeout 1h

## clients: generate the clients under clients anew, after the API's description has changed (Node, Python)
clients:
	go test ./apiserver -run TestClientsAreMadeOfTheDescription -update
	clients/generate

## clients-test: the clients are as generated, are compiled, and do the main job against the service (Node, Python)
clients-test:
	SHOAL_CLIENTS_SUITE=1 go test ./e2e -count=1 -run TestClients -v -timeout 30m

## conformance: the Model Context Protocol's public suite against the agents' gateway, and its official clients for TypeScript
## and Python against the service; e2e/conformance/install puts them into e2e/.conformance (Node, Python)
conformance:
	e2e/conformance/install
	SHOAL_CONFORMANCE_SUITE=1 go test ./apiserver/agents -count=1 -run TestConformance -v -timeout 10m
	SHOAL_CONFORMANCE_SUITE=1 go test ./e2e -count=1 -run TestOfficialClients -v -timeout 10m

## readback: 1,000,000 rows exported in each format while others come in, and read back equal (100,000 of them as a sheet), on
## SQLite and on the ClickHouse of CLICKHOUSE_URL, which there has to be; the memory of such exports, and the speed of those of
## EXPORT_ROWS beside a bare scan; as many sorted, page by page; RATIO_ROWS read by categories and shares beside the same
## without; a site of 1,000,000 links, put in each form, read and run; a sitemap of 500,000 of 50 MB; 1,000,000 rows uploaded in
## each format, and read back equal, on both stores; as many matched with as many products, on both
READBACK_ROWS ?= 1000000
EXPORT_ROWS   ?= 100000
RATIO_ROWS    ?= 2000000
READBACK      := SHOAL_CLUSTER_SUITE=1 go test ./apiserver/api/data -count=1
UPLOADED       = SHOAL_CLUSTER_SUITE=1 go test ./e2e -count=1 -run TestUploadsAreReadBack -upload-rows $(READBACK_ROWS) -v -timeout 2h
MATCHED        = SHOAL_CLUSTER_SUITE=1 go test ./e2e -count=1 -run TestMatchOfMany -match-rows $(READBACK_ROWS) -v -timeout 4h
readback:
	$(READBACK) -run TestReadBack -readback-rows $(READBACK_ROWS) -v -timeout 4h
	$(READBACK) -run TestMemoryOfExports -memory-rows $(READBACK_ROWS) -v -timeout 2h
	$(READBACK) -run '^$$' -bench Export -export-rows $(EXPORT_ROWS) -benchtime 20x -timeout 2h
	$(READBACK) -run TestSortedWalk -walk-rows $(READBACK_ROWS) -v -timeout 2h
	$(READBACK) -run TestReadsWith -ratio-rows $(RATIO_ROWS) -v -timeout 6h
	go test ./apiserver/api/sites -count=1 -run TestLargestSite -site-links $(READBACK_ROWS) -v -timeout 1h
	go test ./apiserver/internal/harvest -count=1 -run TestLargestHarvest -harvest-entries 500000 -v -timeout 1h
	$(UPLOADED)
	$(UPLOADED) -clickhouse $(CLICKHOUSE_URL)
	$(MATCHED)
	$(MATCHED) -clickhouse $(CLICKHOUSE_URL)

## lint: golangci-lint with .golangci.yml
lint:
	go run $(LINT) run ./...

## fuzz: every fuzz target for FUZZTIME (make test runs their seeds only)
fuzz:
	@set -e; for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

# The packages whose properties take an input and keep nothing. Short tests make a fifth of the draws that the flag names.
DRAWS ?= 50000
DRAWN := ./apiserver/internal/diff ./apiserver/internal/export ./apiserver/internal/operation ./apiserver/internal/sitemap \
  ./cmd/shoal/internal/commands ./cmd/shoal/internal/terminal ./controlplane/identity ./fetcher/internal/frontier \
  ./pkg/address ./pkg/amount ./pkg/curl ./pkg/extract ./pkg/extract/contacts ./pkg/extract/internal/dom \
  ./pkg/extract/internal/jsondoc ./pkg/extract/internal/rows ./pkg/filter ./pkg/pattern ./pkg/price ./pkg/profile \
  ./pkg/robots ./pkg/rules ./pkg/schema ./pkg/stream ./pkg/upload

## draws: the properties of parsers, writers and filters on a fifth of DRAWS random inputs each (make test: 100, short: 20)
draws:
	go test $(VETTED) -short -count=1 -timeout 1h $(DRAWN) -rapid.checks=$(DRAWS)

## nightly: what is too long for each commit, on the services that make cluster finds: hours.
## SEEDS, DRAWS, FUZZTIME, KILLS, FAULTS, FAULT_SEEDS and OUTAGE shorten a night
nightly: bare whole race cluster browser bounds oracle hot simulation guards exactness crash crash-stores archive archive-stores years scale scale-stores readback deployment describe conformance clients-test draws fuzz failover watched upgrade faults

clean:
	rm -rf bin
