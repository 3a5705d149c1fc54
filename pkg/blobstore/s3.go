package blobstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

// Time limits for a server that speaks S3. A whole call ends with its context.
const (
	dialTimeout   = 10 * time.Second
	answerTimeout = time.Minute // to the first byte; a server may need it to assemble parts
	idleTimeout   = 90 * time.Second
	tries         = 5
)

// S3 says where a bucket is and how to sign in there.
type S3 struct {
	Bucket   string
	Endpoint string // http://HOST:PORT or https://…; "": Amazon's for the region
	Region   string // "": us-east-1, which self-hosted servers accept
	Key      string // access key, which is not secret
	Secret   string
	RootCAs  *x509.CertPool // for the endpoint's certificate; nil: the system's
}

// Check reports errors without asking the server.
func (c *S3) Check() error {
	if c.Bucket == "" {
		return errors.New("no bucket is named")
	}
	if (c.Key == "") != (c.Secret == "") {
		return errors.New("an access key and its secret are given together")
	}
	if c.Endpoint == "" {
		return nil
	}
	address, err := url.Parse(c.Endpoint)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("endpoint: %q is not http://HOST:PORT or https://…", c.Endpoint)
	}
	return nil
}

// OpenS3 opens blobs in a bucket, which must exist: OpenS3 checks that.
func OpenS3(ctx context.Context, config S3) (*Store, error) {
	if err := config.Check(); err != nil {
		return nil, fmt.Errorf("blobstore: %w", err)
	}
	transport := config.transport()
	bucket, err := s3blob.OpenBucket(ctx, config.client(transport), config.Bucket, &s3blob.Options{
		// A self-hosted server may not support checksums beyond the signature's.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired})
	if err != nil {
		return nil, fmt.Errorf("blobstore: bucket %s: %w", config.Bucket, err)
	}
	store := &Store{bucket: bucket,
		release: func() error { transport.CloseIdleConnections(); return nil }}
	there, err := bucket.IsAccessible(ctx)
	if err == nil && !there {
		err = errors.New("it is not there")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("blobstore: bucket %s: %w", config.Bucket, err),
			store.Close())
	}
	return store, nil
}

func (c *S3) transport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout, IdleConnTimeout: idleTimeout,
		MaxIdleConnsPerHost: partsAtOnce * 2}
}

func (c *S3) client(transport *http.Transport) *s3.Client {
	settings := aws.Config{Region: c.Region, RetryMaxAttempts: tries,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		Credentials:                aws.AnonymousCredentials{},
		HTTPClient:                 &http.Client{Transport: transport}}
	if c.Region == "" {
		settings.Region = "us-east-1"
	}
	if c.Key != "" {
		settings.Credentials = credentials.NewStaticCredentialsProvider(c.Key, c.Secret, "")
	}
	return s3.NewFromConfig(settings, func(o *s3.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint, o.UsePathStyle = aws.String(c.Endpoint), true
		}
	})
}
