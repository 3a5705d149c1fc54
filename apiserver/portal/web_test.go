package portal

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "build the assets from web, and write what was built")

// build bundles the front end. The bundler is a Go library, so Node is not needed.
func build(t *testing.T) map[string][]byte {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: folder, Splitting: true, ChunkNames: "[name]-[hash]",
		Outdir: "assets", LogLevel: api.LogLevelSilent,
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: "web/app.tsx", OutputPath: "app"},
			{InputPath: "web/app.css", OutputPath: "app"}},
		NodePaths: []string{folder + "/web/third_party"}, Bundle: true,
		Format: api.FormatESModule, Platform: api.PlatformNeutral, Target: api.ES2022,
		Conditions: []string{"import"}, MainFields: []string{"module", "main"},
		JSX: api.JSXAutomatic, JSXImportSource: "preact", TsconfigRaw: "{}",
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		LegalComments: api.LegalCommentsNone, Charset: api.CharsetASCII,
	})
	for _, message := range result.Errors {
		t.Errorf("%+v: %s", message.Location, message.Text)
	}
	if t.Failed() {
		t.FailNow()
	}
	built := map[string][]byte{}
	for _, file := range result.OutputFiles {
		built[file.Path[len(folder)+len("/assets/"):]] = file.Contents
	}
	return built
}

// TestAssetsAreAsBuilt compares the embedded assets with their sources. go test ./apiserver/portal
// -update rebuilds them.
func TestAssetsAreAsBuilt(t *testing.T) {
	built := build(t)
	forgetOthers(t, built)
	for name, data := range built {
		path := "assets/" + name
		if *update {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, data) {
			t.Errorf("%s is not what web makes: run go test ./apiserver/portal -update", path)
		}
	}
}

// forgetOthers finds parts that are no longer built. Their names change with their content.
func forgetOthers(t *testing.T, built map[string][]byte) {
	t.Helper()
	kept, err := filepath.Glob("assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		switch _, known := built[filepath.Base(path)]; {
		case known:
		case !*update:
			t.Errorf("%s is built no more: run go test ./apiserver/portal -update", path)
		default:
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFirstPageIsSmall limits the first page to 300 KB on the wire. Parts that load later do not
// count.
func TestFirstPageIsSmall(t *testing.T) {
	p, err := New(nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	sum, all := 0, 0
	for path, file := range p.assets {
		t.Logf("%s: %d bytes, %d compressed", path, len(file.plain), len(file.gzip()))
		all += len(file.gzip())
	}
	for _, path := range append([]string{p.script, p.style, p.icon}, p.begins...) {
		if _, known := p.assets[path]; !known {
			t.Errorf("the page begins with %s, which there is not", path)
			continue
		}
		sum += len(p.assets[path].gzip())
	}
	t.Logf("the first page has %d bytes of %d", sum, all)
	if sum == all {
		t.Error("nothing comes later")
	}
	if sum > 300<<10 {
		t.Errorf("the first page has %d bytes", sum)
	}
}
