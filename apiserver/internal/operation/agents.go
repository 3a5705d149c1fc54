package operation

import (
	"fmt"
	"reflect"
)

// Effect is what a call does, as agents are told before they make it. An operation with an effect
// is a tool of the agent gateway, named by its id. Agents do not see an operation without one.
type Effect string

// The effects of calls.
const (
	// Reads changes nothing and costs nothing.
	Reads Effect = "reads"
	// Spends costs the customer's money.
	Spends Effect = "spends"
	// Adds makes something; a repeat makes another one.
	Adds Effect = "adds"
	// Sets changes something; a repeat changes nothing more.
	Sets Effect = "sets"
	// Destroys removes something for good; a repeat changes nothing more.
	Destroys Effect = "destroys"
)

// Values of the tag agent of a request's field.
const (
	agentNeeds = "required" // agents must give it, though others need not
	agentLacks = "hidden"   // agents cannot give it
)

// ScrapedRow marks a type of scraped rows. Agents get such rows with every text marked as data. The
// tag scraped does the same for a member of an answer. Its value names the member that says where
// the texts were scraped, or is "-" if none does.
type ScrapedRow interface{ ScrapedRow() }

var scrapedRowType = reflect.TypeFor[ScrapedRow]()

// checkAgents panics if the tool's answer, events or body are not JSON of one type.
func (op *Operation) checkAgents() {
	if op.Agents == "" {
		return
	}
	switch op.response {
	case reflect.TypeFor[Download](), reflect.TypeFor[Raw](), reflect.TypeFor[Served](), fileType:
		panic(fmt.Sprintf("operation %s: agents get JSON alone", op.ID))
	}
	if op.Streams() && op.Event == nil {
		panic(fmt.Sprintf("operation %s: agents wait for events of one type", op.ID))
	}
	if op.request.body != nil && (op.request.body.raw || op.request.body.form) {
		panic(fmt.Sprintf("operation %s: agents send JSON alone", op.ID))
	}
}
