package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Ping asks whether the registry serves.
func (p *Pusher) Ping(ctx context.Context) error {
	_, err := do(ctx, http.MethodGet, p.registry+"/v2/", body{})
	return err
}

// putBlob uploads a blob unless the registry has it: most images share all but their configuration.
func (p *Pusher) putBlob(ctx context.Context, repository, digest string, content []byte) error {
	blobs := p.registry + "/v2/" + repository + "/blobs/"
	if _, err := do(ctx, http.MethodHead, blobs+digest, body{}); err == nil {
		return nil
	}
	location, err := do(ctx, http.MethodPost, blobs+"uploads/", body{})
	if err != nil {
		return err
	}
	query := location.Query()
	query.Set("digest", digest)
	location.RawQuery = query.Encode()
	_, err = do(ctx, http.MethodPut, location.String(), body{"application/octet-stream", content})
	return err
}

func (p *Pusher) putManifest(ctx context.Context, repository, tag string, content []byte) error {
	_, err := do(ctx, http.MethodPut, p.registry+"/v2/"+repository+"/manifests/"+url.PathEscape(tag),
		body{manifestType, content})
	return err
}

// body of a request.
type body struct {
	mediaType string
	content   []byte
}

// do returns the location that the response names, if any.
func do(ctx context.Context, method, target string, b body) (*url.URL, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(b.content))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target, err)
	}
	request.Header.Set("Content-Type", b.mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, target, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %s", method, target, response.Status, answer)
	}
	location, err := response.Request.URL.Parse(response.Header.Get("Location"))
	if err != nil {
		return nil, fmt.Errorf("%s %s: location: %w", method, target, err)
	}
	return location, nil
}
