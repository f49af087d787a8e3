package clientgo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// A created pod has the fields of its template that its type lacks.
func TestUnknownFieldsAreSent(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = r.Method + " " + r.URL.String() + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "shop", "web"
	if err := revision.KeepUnknownFields(pod, map[string]any{"spec": map[string]any{"newer": "x"}}); err != nil {
		t.Fatal(err)
	}
	answer, err := clientgo.Sender(clients)(t.Context(), &write.Write{
		Verb: write.Create, Object: pod, FieldOwner: "operator",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"POST /api/v1/namespaces/shop/pods?fieldManager=operator ", `"newer":"x"`, `"kind":"Pod"`,
	} {
		if !strings.Contains(sent, want) || strings.Contains(sent, revision.UnknownFieldsKey) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	if text, err := json.Marshal(answer); err != nil || answer.GetName() != "web" {
		t.Errorf("answer %s, %v", text, err)
	}
}
