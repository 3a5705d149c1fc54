package fsm

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

var update = flag.Bool("update", false, "append the encodings that changed to the golden files")

// emptyMap is the encoding of a value without fields.
var emptyMap = []byte{0xa0}

// samples returns all registered commands with every field set.
func samples(t testing.TB, m *FSM) map[command.Number]command.Payload {
	t.Helper()
	all := map[command.Number]command.Payload{}
	for number, known := range m.registry {
		zero, err := known.decode(m.codec, emptyMap)
		if err != nil {
			t.Fatalf("command %d: %v", number, err)
		}
		sample := reflect.New(reflect.TypeOf(zero))
		codectest.Fill(sample.Interface())
		all[number] = sample.Elem().Interface().(command.Payload)
	}
	return all
}

// Each command has a file of encodings, one a line, oldest first. The last one is in use; all stay
// readable.
func TestCommandEncodings(t *testing.T) {
	m := New()
	sampleCall := &command.Call{}
	codectest.Fill(sampleCall)
	for number, payload := range samples(t, m) {
		name := fmt.Sprintf("%02d-%s", number, reflect.TypeOf(payload).Name())
		t.Run(name, func(t *testing.T) {
			encoded, err := m.Encode(ids.ID{1, 2, 3}, 1_700_000_000_000, payload, sampleCall)
			if err != nil {
				t.Fatal(err)
			}
			golden := readGolden(t, filepath.Join("testdata", "commands", name), encoded)
			for i, line := range golden {
				var env command.Envelope
				if err := m.codec.Unmarshal(line, &env); err != nil {
					t.Fatalf("encoding %d: %v", i+1, err)
				}
				decoded, err := m.registry[env.Number].decode(m.codec, env.Body)
				if err != nil {
					t.Fatalf("encoding %d: %v", i+1, err)
				}
				if i < len(golden)-1 {
					continue
				}
				if d := cmp.Diff(payload, decoded); d != "" {
					t.Errorf("the payload does not survive its encoding: %s", d)
				}
				if env.Number != number || cmp.Diff(sampleCall, env.Call) != "" {
					t.Errorf("the envelope does not survive: %+v", env)
				}
			}
			if !bytes.Equal(golden[len(golden)-1], encoded) {
				t.Error("the encoding has changed; run the test with -update and keep the old lines")
			}
		})
	}
}

// readGolden reads a file of encodings. With -update it appends the newest one.
func readGolden(t *testing.T, path string, newest []byte) [][]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatalf("the command has no golden encoding; run the test with -update: %v", err)
	}
	var lines [][]byte
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		line, err := hex.DecodeString(scanner.Text())
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if *update && (len(lines) == 0 || !bytes.Equal(lines[len(lines)-1], newest)) {
		data = append(data, hex.EncodeToString(newest)+"\n"...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, newest)
	}
	return lines
}

// Nodes of version 1 and this binary apply the same log during an upgrade. So the results they
// store must be equal to the byte, including empty members.
func TestEmptyResultsAreWrittenAsByVersionOne(t *testing.T) {
	m := New()
	var got []string
	for number, known := range m.registry {
		if !known.Kept || known.Since > 1 {
			continue
		}
		zero, err := known.load(m.codec, emptyMap)
		if err != nil {
			t.Fatalf("command %d: %v", number, err)
		}
		encoded, _ := m.save(Result{Value: zero})
		got = append(got, fmt.Sprintf("%02d %x\n", number, encoded))
	}
	slices.Sort(got)
	path := filepath.Join("testdata", "empty-results-1")
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(got, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), strings.Join(got, "")); d != "" {
		t.Errorf("version 1 wrote (-): %s", d)
	}
}

// A stored result is decoded as it was.
func TestKeptResultsSurviveTheirEncoding(t *testing.T) {
	m := New()
	for number, known := range m.registry {
		if !known.Kept {
			continue
		}
		zero, err := known.load(m.codec, emptyMap)
		if err != nil {
			t.Fatalf("command %d: %v", number, err)
		}
		sample := reflect.New(reflect.TypeOf(zero))
		codectest.Fill(sample.Interface())
		want := sample.Elem().Interface()
		value, failure := m.save(Result{Value: want})
		if d := cmp.Diff(want, m.load(uint16(number), value, failure).Value); d != "" {
			t.Errorf("the result of command %d does not survive: %s", number, d)
		}
	}
}

// Every payload with a declaration has a function and a golden encoding. Samples, encodings, fuzz
// seeds and the table of proposers all use the registry.
func TestEveryCommandIsRegistered(t *testing.T) {
	registered := map[string]bool{}
	for _, payload := range samples(t, New()) {
		registered[reflect.TypeOf(payload).Name()] = true
	}
	files, err := filepath.Glob(filepath.Join("..", "command", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "Declaration" {
				continue
			}
			declared++
			if payload := method.Recv.List[0].Type.(*ast.Ident).Name; !registered[payload] {
				t.Errorf("%s is declared, and no function applies it", payload)
			}
		}
	}
	if declared != len(registered) {
		t.Errorf("%d commands are declared, %d registered", declared, len(registered))
	}
	if entries, err := os.ReadDir(filepath.Join("testdata", "commands")); err != nil ||
		len(entries) != declared {
		t.Errorf("%d golden files for %d commands (%v): none may ever be removed", len(entries),
			declared, err)
	}
}

// The same log gives the same state, byte for byte, on two machines and after a snapshot in
// between.
func TestSameLogSameState(t *testing.T) {
	whole, split := New(), New()
	var log [][]byte
	seq := &ids.Sequence{}
	add := func(payload command.Payload) {
		data, err := whole.Encode(seq.New(), int64(1000+20_000*len(log)), payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, data)
	}
	add(command.CreateClusterPayload{Version: command.Newest, Shards: 4, FreeGrant: 5})
	for n := range 20 {
		ref := fmt.Sprint("c", n%5)
		add(command.OpenCustomerPayload{Customer: ref, Entry: seq.New()})
		add(command.AdjustWalletPayload{Customer: ref, Entry: seq.New(), Amount: int64(n + 1)})
		add(command.PutGroupPayload{Create: true, ID: seq.New(), Customer: ref,
			Name: fmt.Sprint(n)})
	}
	for i, data := range log {
		whole.Apply(uint64(i+1), data)
		split.Apply(uint64(i+1), data)
		if i == len(log)/2 {
			restored := New()
			if err := restored.Restore(strings.NewReader(written(t,
				split.Snapshot()))); err != nil {
				t.Fatal(err)
			}
			split = restored
		}
	}
	if written(t, whole.Snapshot()) != written(t, split.Snapshot()) {
		t.Fatal("the states differ")
	}
	digests := whole.Store().Digests()
	if len(digests) != 4 || !slices.Equal(digests, split.Store().Digests()) {
		t.Errorf("the digests differ: %v and %v", digests, split.Store().Digests())
	}
	if slices.ContainsFunc(digests[1:],
		func(d state.Digest) bool { return d.Sum == digests[0].Sum }) {
		t.Errorf("states that differ have equal digests: %v", digests)
	}
}

func written(t *testing.T, s *state.Snapshot) string {
	t.Helper()
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
