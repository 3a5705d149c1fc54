package operation

import (
	"fmt"
	"reflect"
)

// Effect is what a call does, as agents are told before they make it. An operation that has one is
// a tool of the agent gateway, named by its id. Without one no agent sees it.
type Effect string

// The effects.
const (
	// Reads changes nothing and costs nothing.
	Reads Effect = "reads"
	// Spends costs the customer's money.
	Spends Effect = "spends"
	// Adds makes something, and a repeat makes one more.
	Adds Effect = "adds"
	// Sets changes something, and a repeat changes nothing more.
	Sets Effect = "sets"
	// Destroys takes away what cannot be brought back, and a repeat changes nothing more.
	Destroys Effect = "destroys"
)

// What the tag agent of a request's field says.
const (
	agentNeeds = "required" // agents have to give it, though others need not
	agentLacks = "hidden"   // agents cannot give it
)

// ScrapedRow is a type of rows as they were scraped, which agents get with every text marked. The
// tag scraped does the same for a member of an answer: it names the member that says where its
// texts were scraped.
type ScrapedRow interface{ ScrapedRow() }

var scrapedRowType = reflect.TypeFor[ScrapedRow]()

// checkAgents refuses a tool whose answer is no JSON.
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
