package service

import (
	"errors"
	"fmt"

	"shoal.dev/shoal/apiserver"
)

// TLSFlags configure the encryption of customers' connections.
type TLSFlags struct {
	Cert string `group:"operation" help:"Certificate of --listen with its chain (PEM); --listen then serves https. Without it a proxy must encrypt connections from other machines. A new pair is loaded without a restart." type:"path" placeholder:"FILE"`
	Key  string `group:"operation" help:"Private key of --tls-cert (PEM)." type:"path" placeholder:"FILE"`
}

// open reads the pair, nil if none is named.
func (f *TLSFlags) open() (*apiserver.Certificate, error) {
	if f.Cert == "" && f.Key == "" {
		return nil, nil
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("--tls-cert, --tls-key: one needs the other")
	}
	certificate, err := apiserver.OpenCertificate(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return certificate, nil
}

func (f *TLSFlags) check() error {
	_, err := f.open()
	return err
}

// scheme is the scheme of the customers' listener.
func (f *TLSFlags) scheme() string {
	if f.Cert == "" {
		return "http"
	}
	return "https"
}
