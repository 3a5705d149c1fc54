package forbidden

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Names is a resolver under the attacker's control. For each name it has a list of answers, one per
// query; the last one repeats. Unknown names resolve to Public, except those that end in Dead. It
// is safe for concurrent use.
type Names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   map[string]int
}

// Dead is the suffix of names that do not resolve.
const Dead = ".invalid"

// Set sets a name's answers.
func (n *Names) Set(name string, answers ...[]netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers, n.asked = map[string][][]netip.Addr{}, map[string]int{}
	}
	n.answers[name] = answers
}

// Rebind sets names under .example for each address that must not be reached. They resolve to the
// address alone, to it among Public ones, or to it and Public ones by turns.
func (n *Names) Rebind(addrs []netip.Addr) []Target {
	var all []Target
	for i, addr := range addrs {
		for kind, answers := range map[string][][]netip.Addr{
			"is": {{addr}}, "mixed": {{Public[0], addr}}, "hides": {{addr, Public[0], addr}},
			"turns":    {Public[:1], {addr}},
			"flickers": {{addr}, Public[:1], {addr}},
		} {
			name := fmt.Sprintf("%s-%d.example", kind, i)
			n.Set(name, answers...)
			all = append(all, Target{URL: "http://" + name + "/", For: addr},
				Target{URL: "http://" + name + ".:8080/", For: addr})
		}
	}
	return all
}

// LookupNetIP implements egress.Resolver.
func (n *Names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	answers := n.answers[name]
	switch {
	case len(answers) > 0:
		turn := min(n.asked[name], len(answers)-1)
		n.asked[name]++
		return answers[turn], nil
	case strings.HasSuffix(name, Dead):
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return Public, nil
}

// Serve answers DNS queries over UDP until conn is closed.
func (n *Names) Serve(conn net.PacketConn) error {
	buffer := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := n.answer(buffer[:size])
		if err != nil {
			continue // not a query; resolvers retry
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			return err
		}
	}
}

func (n *Names) answer(query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := p.Question()
	if err != nil {
		return nil, err
	}
	header.Response, header.RecursionAvailable = true, true
	var addrs []netip.Addr
	if question.Type == dnsmessage.TypeA || question.Type == dnsmessage.TypeAAAA {
		if addrs, err = n.LookupNetIP(context.Background(), "ip",
			question.Name.String()); err != nil {
			header.RCode = dnsmessage.RCodeNameError
		}
	}
	b := dnsmessage.NewBuilder(nil, header)
	if err := errors.Join(b.StartQuestions(), b.Question(question), b.StartAnswers()); err != nil {
		return nil, err
	}
	resource := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 0}
	for _, addr := range addrs {
		switch {
		case addr.Is4() && question.Type == dnsmessage.TypeA:
			err = b.AResource(resource, dnsmessage.AResource{A: addr.As4()})
		case addr.Is6() && question.Type == dnsmessage.TypeAAAA:
			err = b.AAAAResource(resource, dnsmessage.AAAAResource{AAAA: addr.As16()})
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Finish()
}
