package tree

import "golang.org/x/net/html"

// Attr returns the value of an element's attribute, "" if it has none. Attributes of a foreign
// namespace, as xlink:href in SVG, do not count.
func Attr(n *html.Node, key string) string {
	value, _ := LookAttr(n, key)
	return value
}

// LookAttr returns the value of an element's attribute. ok is false if the element has none.
func LookAttr(n *html.Node, key string) (value string, ok bool) {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			return n.Attr[i].Val, true
		}
	}
	return "", false
}
