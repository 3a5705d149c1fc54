package portal

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

var update = flag.Bool("update", false, "build the assets from web, and write what was built")

// build bundles the front end. The bundler is a Go library: nobody needs Node.
func build(t *testing.T) map[string][]byte {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: folder, Outdir: "assets", LogLevel: api.LogLevelSilent,
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

// TestAssetsAreAsBuilt holds what is served to its sources: go test ./apiserver/portal -update
// builds it.
func TestAssetsAreAsBuilt(t *testing.T) {
	for name, data := range build(t) {
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

// TestFirstPageIsSmall holds the first page to its 300 KB, as they go over the wire.
func TestFirstPageIsSmall(t *testing.T) {
	p, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for path, file := range p.assets {
		t.Logf("%s: %d bytes, %d compressed", path, len(file.plain), len(file.gzip))
		sum += len(file.gzip)
	}
	if sum > 300<<10 {
		t.Errorf("the first page has %d bytes", sum)
	}
}
