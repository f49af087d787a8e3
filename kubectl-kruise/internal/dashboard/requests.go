package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/forecast"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/plan"
)

// pod explains a pod, as the command explain does.
func (s *server) pod(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	if shown := s.cluster.namespace; shown != "" && namespace != shown {
		refuse(w, http.StatusBadRequest, fmt.Errorf("the dashboard shows namespace %s alone", shown))
		return
	}
	c := s.command(r.Context())
	o, err := c.Get(kindOfPods(), namespace, name)
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	sections, err := explain.Of(c, o)
	if err != nil {
		refuse(w, codeOf(err), err)
		return
	}
	answer(w, map[string]any{"sections": sections})
}

// codeOf returns the status code of an error of the API server.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		return int(status.Status().Code)
	}
	return http.StatusBadRequest
}

const (
	// maxManifests bounds the objects of one plan, and planTime how long it may take.
	maxManifests = 20
	planTime     = time.Minute
)

// planned is the plan of one manifest.
type planned struct {
	Kind     string             `json:"kind"`
	Name     string             `json:"name"`
	Forecast *forecast.Forecast `json:"forecast,omitempty"`
	Text     string             `json:"text,omitempty"`
	Warnings string             `json:"warnings,omitempty"`
	Error    string             `json:"error,omitempty"`
}

// plan forecasts the manifests of a request, as the command plan does. It writes nothing.
func (s *server) plan(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Manifest string `json:"manifest"`
	}
	if err := decodeBody(w, r, &request); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	manifests, err := decode(request.Manifest)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if !s.busy.TryLock() {
		refuse(w, http.StatusTooManyRequests, errors.New("another plan is computed"))
		return
	}
	defer s.busy.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), planTime)
	defer cancel()
	all := make([]planned, 0, len(manifests))
	for _, manifest := range manifests {
		all = append(all, s.planOne(ctx, manifest))
	}
	answer(w, map[string]any{"plans": all})
}

func (s *server) planOne(ctx context.Context, manifest *unstructured.Unstructured) planned {
	p := planned{Kind: manifest.GetKind(), Name: manifest.GetName()}
	c, warnings := s.command(ctx), &bytes.Buffer{}
	c.ErrOut = warnings
	f, err := plan.Manifest(c, manifest)
	if err != nil {
		p.Error = err.Error()
		return p
	}
	text := &bytes.Buffer{}
	if err := f.WriteText(text); err == nil {
		p.Text = text.String()
	}
	p.Forecast, p.Warnings = f, warnings.String()
	return p
}

// decode reads the objects of a text in YAML or JSON.
func decode(text string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, errors.New("the manifest is empty")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read manifest: %w", err)
		case len(o.Object) == 0:
			continue
		case o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "":
			return nil, errors.New("read manifest: apiVersion, kind and metadata.name must be set")
		case len(all) == maxManifests:
			return nil, fmt.Errorf("a plan has %d manifests at most", maxManifests)
		}
		all = append(all, o)
	}
}
