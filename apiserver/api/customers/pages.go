package customers

import (
	"bytes"
	"context"
	"embed"
	"html/template"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// html is the media type of the pages.
const html = "text/html; charset=utf-8"

//go:embed page.html
var files embed.FS

// page is the content of a public page.
type page struct{ Title, Text, Portal string }

// userAgreement is GET /api/customer/user-agreement.
func (r Resource) userAgreement() *operation.Operation {
	document := r.Agreement
	if document == nil {
		document = render(page{Title: "User agreement", Text: "The operator of this server has " +
			"published no user agreement. Ask them under which terms you may use it."})
	}
	return public("svc_user_agreement", "GET /api/customer/user-agreement",
		"Shows the user agreement", document)
}

// subscribed is GET /api/customer/subscription/success.
func (r Resource) subscribed() *operation.Operation {
	return public("svc_subscription_success", "GET /api/customer/subscription/success",
		"Shows that a checkout was completed", render(page{Title: "Thank you",
			Text: "Your checkout is complete. Your account shows it once the payment has " +
				"been confirmed.", Portal: r.Portal}))
}

// paymentCanceled is GET /api/customer/payment/canceled.
func (r Resource) paymentCanceled() *operation.Operation {
	return public("svc_payment_canceled", "GET /api/customer/payment/canceled",
		"Shows that a checkout was canceled", render(page{Title: "Payment canceled",
			Text: "Nothing was charged. You can try again at any time.", Portal: r.Portal}))
}

// public serves a page to anyone.
func public(id, route, summary string, document []byte) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: id, Routes: operation.Routes(route), Group: group, Summary: summary,
		Access: auth.Public, Rate: limits.Anonymous, Media: []string{"text/html"},
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		return operation.Raw{ContentType: html, Body: document}, nil
	})
}

// render renders a page. The template is embedded, so it always parses.
func render(p page) []byte {
	var out bytes.Buffer
	if err := template.Must(template.ParseFS(files, "page.html")).Execute(&out, p); err != nil {
		panic(err)
	}
	return out.Bytes()
}
