package blobstoretest

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"shoal.dev/shoal/pkg/blobstore"
)

// MakeBucket creates the bucket for a test. The service never creates one.
func MakeBucket(ctx context.Context, config blobstore.S3) error {
	client := s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: aws.String(config.Endpoint),
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(config.Key, config.Secret, "")})
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(config.Bucket)})
	if err != nil {
		return fmt.Errorf("make bucket %s: %w", config.Bucket, err)
	}
	return nil
}
