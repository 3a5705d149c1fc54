package portal

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

// roots are the schemas of the API that the portal uses. Schemas that they refer to are included.
var roots = []string{"AccountPage", "AuditTrailEntryCursorPage", "Category", "ClusterNode",
	"ClusterStatus", "CommonField", "Customer", "CustomerAccount", "CustomerListEntryPage",
	"DeletionPreview", "FileParts", "GeneratedKey", "Group", "GroupEstimate", "GroupInput",
	"Identity", "InvoicePage", "Job", "JobCursorPage", "JobPage", "JobStatusEvent", "KeptBackup",
	"KeyList", "LaunchedListRun", "LaunchedRun", "LinkError", "ListRunInput", "NewFileScraper",
	"NotificationEvent", "NotificationPage", "PagePick", "PagePickInput", "PagePreview",
	"PlanFeatures", "PlanPrice", "Price", "PriceTable", "Problem", "Row", "RowCursorPage",
	"RowReceipt", "RunDiff", "RunEstimate", "RunProfile", "RunsOfGroup",
	"Schema", "SchemaInput", "SchemaListEntry",
	"Scraper", "ScraperCursorPage", "ScraperProposal", "SentFile", "ServiceSettings", "Site",
	"SiteLinkPage", "SitemapEntryPage", "StartTypeForGroup", "StartedTopUp", "Starts",
	"Subscription", "TopUpEvent", "TopUpStatus", "TransactionCursorPage", "URLPreviewInput",
	"UnreadNotifications", "Wallet", "WalletPreferences", "WebhookDeliveryPage", "WebhookList",
	"WebhookWithSecret", "WorkItemPage"}

// schema is the part of JSON Schema that the description uses.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Enum       []any             `json:"enum"`
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Additional any               `json:"additionalProperties"`
}

// UnmarshalJSON reads a schema. It reads true as the schema that accepts anything.
func (s *schema) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain schema
	return json.Unmarshal(data, (*plain)(s))
}

// typeOf converts a schema to TypeScript, and calls named with every schema that it refers to.
func (s schema) typeOf(named func(string)) string {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		named(name)
		return name
	case len(s.Enum) > 0:
		var values []string
		for _, value := range s.Enum {
			text, err := json.Marshal(value)
			if err != nil {
				panic(err) // the value was read from JSON
			}
			values = append(values, string(text))
		}
		return strings.Join(values, " | ")
	case len(s.AnyOf) > 0:
		var types []string
		for _, of := range s.AnyOf {
			types = append(types, of.typeOf(named))
		}
		return strings.Join(types, " | ")
	}
	var types []string
	all, several := s.Type.([]any)
	if !several {
		all = []any{s.Type}
	}
	for _, one := range all {
		switch one {
		case "integer", "number":
			types = append(types, "number")
		case "string", "boolean", "null":
			types = append(types, one.(string))
		case "array":
			types = append(types, "("+s.Items.typeOf(named)+")[]")
		case "object":
			types = append(types, "Record<string, unknown>")
		default:
			types = append(types, "unknown")
		}
	}
	return strings.Join(types, " | ")
}

// types are the schemas in TypeScript, and the advice for failed links by code.
func types(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(data, &described); err != nil {
		t.Fatal(err)
	}
	wanted, written := slices.Clone(roots), map[string]string{}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if _, done := written[name]; done {
			continue
		}
		s, known := described.Components.Schemas[name]
		if !known {
			t.Fatalf("the description has no schema %s", name)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "export interface %s {\n", name)
		for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
			mark := "?"
			if slices.Contains(s.Required, member) {
				mark = ""
			}
			fmt.Fprintf(&text, "  %s%s: %s;\n", member, mark,
				s.Properties[member].typeOf(func(n string) { wanted = append(wanted, n) }))
		}
		if s.Additional == true {
			text.WriteString("  [member: string]: unknown;\n")
		}
		text.WriteString("}\n")
		written[name] = text.String()
	}
	out := "// Made of the API's description and the error catalogue by " +
		"go test ./apiserver/portal -update.\n"
	for _, name := range slices.Sorted(maps.Keys(written)) {
		out += "\n" + written[name]
	}
	out += "\n/** Why links fail, by the code, and what to do about it. */\n" +
		"export const failures: Record<string, { title: string; advice: string }> = {\n"
	codes := fault.Catalog()
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if said := fault.Advice(code, 0); said != "" {
			out += fmt.Sprintf("  %s: {\n    title: %q,\n    advice: %q,\n  },\n", code,
				codes[code].Title, said)
		}
	}
	out += "};\n\n/** What to do about http_status, by the status or its first digit. */\n" +
		"export const byStatus: Record<number, string> = {\n"
	advice := fault.AdviceByStatus()
	for _, status := range slices.Sorted(maps.Keys(advice)) {
		out += fmt.Sprintf("  %d: %q,\n", status, advice[status])
	}
	return out + "};\n"
}

// TestTypesAreAsDescribed compares the portal's types with the API's description.
func TestTypesAreAsDescribed(t *testing.T) {
	const path = "web/schema.gen.ts"
	want := types(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != want {
		t.Errorf("%s is not what the description makes: run go test ./apiserver/portal -update",
			path)
	}
}

var imported = regexp.MustCompile(`import type \{([^}]+)\} from "\./schema\.gen"`)

// TestImportedTypesAreThere: a bundler silently drops a type that does not exist.
func TestImportedTypesAreThere(t *testing.T) {
	made, err := os.ReadFile("web/schema.gen.ts")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("web/*.ts*")
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range imported.FindAllStringSubmatch(string(source), -1) {
			for name := range strings.SplitSeq(found[1], ",") {
				names++
				name, _, _ = strings.Cut(strings.TrimSpace(name), " as ")
				if !strings.Contains(string(made), "export interface "+name+" {") {
					t.Errorf("%s imports %s, which is not among the roots", path, name)
				}
			}
		}
	}
	if names < 50 {
		t.Errorf("only %d imports are found: they are written in another way", names)
	}
}
