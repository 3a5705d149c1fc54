#!/bin/sh
# Launches a run over the addresses of a file, watches it, and prints its rows: run.sh LIST NAME
set -eu

: "${SHOAL_SERVER:?names the server, such as http://127.0.0.1:8080}" "${SHOAL_KEY:?is an API key}"
list=$1 name=$2

# call METHOD PATH [CURL ARGUMENT]… makes a call and prints its answer; a refusal is printed as an error.
call() {
  method=$1 path=$2
  shift 2
  answer=$(curl --silent --show-error --fail-with-body --request "$method" \
    --header "Authorization: Bearer $SHOAL_KEY" "$@" "$SHOAL_SERVER$path") || {
    printf '%s\n' "$answer" >&2
    return 1
  }
  printf '%s\n' "$answer"
}

# member NAME finds the first text of that name in the JSON of the standard input.
member() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }

# The same Idempotency-Key gives the same group again.
group=$(call PUT /api/scraper/group --header "Idempotency-Key: $name" \
  --header 'Content-Type: application/json' --data "{\"name\":\"$name\"}")
group=$(printf '%s' "$group" | member id)

# The addresses are the body, so a list of any length is sent as it stands in the file.
run=$(call POST /api/scraper/url-list-run --url-query "groupId=$group" --url-query "name=$name" \
  --url-query 'itemsConfig=[{"name":"title","selector":"h1","kind":"TEXT"}]' \
  --header 'Content-Type: text/uri-list' --data-binary "@$list")
job=$(printf '%s' "$run" | member jobId)
echo "run $job" >&2

# The last frame has the final state. A stream may break off before: the next one goes on behind what was seen.
frames=$(mktemp)
trap 'rm -f "$frames"' EXIT
last='' breaks=0
while :; do
  curl --silent --no-buffer --header "Authorization: Bearer $SHOAL_KEY" --header "Last-Event-ID: $last" \
    "$SHOAL_SERVER/api/scraper-job-status/$job/stream" | tee "$frames" | sed -n 's/^data: //p' >&2
  case $(sed -n 's/^data: //p' "$frames" | tail -n 1 | member state) in
    SUCCESS) break ;;
    FAILED | CANCELLED) exit 1 ;; # which the frame says
  esac
  seen=$(sed -n 's/^id: //p' "$frames" | tail -n 1)
  if [ -n "$seen" ]; then last=$seen breaks=0; fi
  breaks=$((breaks + 1))
  [ "$breaks" -lt 30 ] || exit 1
  sleep 1
done

# A cursor leads from page to page, until there is none.
cursor=
while :; do
  page=$(call GET /api/scraper/data --url-query "jobId=$job" --url-query "cursor=$cursor")
  printf '%s\n' "$page"
  cursor=$(printf '%s' "$page" | member nextCursor) || true # null at the end
  [ -n "$cursor" ] || break
done
