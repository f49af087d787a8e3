//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testCreate creates jobs of all nodes, and the objects that kubectl creates.
func (p *plugin) testCreate(t *testing.T) {
	s := p.space(t)
	s.prints(t, []string{"broadcastjob.apps.kruise.io/date created"}, "create", "broadcastJob", "date",
		"--image=plugin/helper:1", "--", "date")
	s.apply(t, `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: cron}
spec:
  schedule: "0 0 1 1 *"
  template:
    broadcastJobTemplate:
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: once, image: "plugin/helper:1", command: ["true"]}]
        completionPolicy: {type: Always}
`)
	s.do(t, "create", "broadcastJob", "manual", "--from=acj/cron", "--dry-run=server")
	s.do(t, "create", "broadcastJob", "manual", "--from=acj/cron")
	s.has(t, "broadcastjob/manual", ".metadata.ownerReferences[0].name", "cron")
	for _, job := range []string{"date", "manual"} {
		s.do(t, "rollout", "status", "broadcastjob/"+job, "--timeout=2m")
		s.has(t, "broadcastjob/"+job, ".status.succeeded", fmt.Sprint(nodes))
	}
	s.testCreates(t)
}

// testCreates creates what kubectl creates, each with a name of its own.
func (s *space) testCreates(t *testing.T) {
	t.Helper()
	name := "plugin-" + s.namespace
	t.Cleanup(func() {
		_, _ = s.Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found",
			"clusterrole/"+name, "clusterrolebinding/"+name, "priorityclass/"+name, "namespace/"+name)
	})
	certificate, key := keyPair(t)
	for words, more := range map[string]string{
		"clusterrole":            "--verb=get --resource=pods",
		"clusterrolebinding":     "--clusterrole=view --user=one",
		"configmap":              "--from-literal=a=b",
		"cronjob":                "--image=plugin/helper:1 --schedule=@yearly",
		"deployment":             "--image=plugin/web:1 --replicas=0",
		"ingress":                "--rule=host/path=svc:80",
		"job":                    "--image=plugin/helper:1 -- true",
		"namespace":              "",
		"poddisruptionbudget":    "--selector=app=none --min-available=1",
		"priorityclass":          "--value=1",
		"quota":                  "--hard=pods=100",
		"role":                   "--verb=get --resource=pods",
		"rolebinding":            "--role=" + name + " --user=one",
		"secret docker-registry": "--docker-username=a --docker-password=b",
		"secret generic":         "--from-literal=a=b",
		"secret tls":             "--cert=" + certificate + " --key=" + key,
		"service clusterip":      "--tcp=80",
		"service externalname":   "--external-name=example.com",
		"service loadbalancer":   "--tcp=80",
		"service nodeport":       "--tcp=80",
		"serviceaccount":         "",
	} {
		kind, sort, _ := strings.Cut(words, " ")
		object := name
		if kind == "service" || kind == "secret" {
			object = sort
		}
		s.do(t, append(append(strings.Fields("create "+words), object), strings.Fields(more)...)...)
		s.has(t, kind+"/"+object, ".metadata.name", object)
	}
	if token := s.do(t, "create", "token", "default"); strings.Count(token, ".") != 2 {
		t.Errorf("%q is no token", token)
	}
}

// keyPair writes a certificate and its key.
func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: signed}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
}

// testSteps is about Rollouts of rollouts.kruise.io, whose controller is not here.
func (p *plugin) testSteps(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 1))
	s.pods(t, "web", 1)
	s.apply(t, `
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata: {name: demo}
spec:
  workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}
  strategy: {canary: {steps: [{replicas: 1}, {replicas: 2}, {replicas: 3}]}}
`)
	s.do(t, "patch", "rollout/demo", "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"Progressing","canaryStatus":{"currentStepIndex":2,"currentStepState":"StepPaused"}}}`)
	s.prints(t, []string{"Step:", "2/3", "plugin/web:1", "StepPaused"}, "describe", "rollout", "demo", "--no-color")
	s.prints(t, []string{"approved"}, "rollout", "approve", "rollout/demo")
	s.has(t, "rollout/demo", ".status.canaryStatus.currentStepState", "StepReady")
	s.fails(t, "does not allow to approve", "rollout", "approve", "rollout/demo")
	s.do(t, "rollout", "undo", "rollout/demo", "--fast")
	s.has(t, "rollout/demo", ".status.canaryStatus.nextStepIndex", "1")
	s.do(t, "patch", "rollout/demo", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Healthy"}}`)
	s.prints(t, []string{"Healthy"}, "describe", "rollout", "--all", "--watch", "--timeout=10")
}

// testKubectl has commands that kubectl has, on a kind that it does not know.
func (p *plugin) testKubectl(t *testing.T) {
	s := p.space(t)
	s.exits(t, 0, clonesOf("web", 0), "create", "-f", "-")
	changed := strings.ReplaceAll(clonesOf("web", 0), "plugin/web:1", "plugin/web:2")
	if got := s.exits(t, 1, changed, "diff", "-f", "-"); !strings.Contains(got.out, "+      - image: plugin/web:2") {
		t.Errorf("diff prints %s", got.out)
	}
	s.exits(t, 0, clonesOf("web", 0), "apply", "set-last-applied", "--create-annotation", "-f", "-")
	s.prints(t, []string{"image: plugin/web:1"}, "apply", "view-last-applied", "cloneset/web")
	s.prints(t, []string{"Edit cancelled"}, "apply", "edit-last-applied", "cloneset/web")
	s.exits(t, 0, changed, "replace", "-f", "-")
	s.has(t, "cloneset/web", ".spec.template.spec.containers[0].image", "plugin/web:2")
	s.do(t, "patch", "cloneset/web", "--type=merge", "-p", `{"spec":{"minReadySeconds":7}}`)
	s.has(t, "cloneset/web", ".spec.minReadySeconds", "7")
	s.do(t, "wait", "cloneset/web", "--for=jsonpath={.status.replicas}=0", "--timeout=1m")
	s.prints(t, []string{"clonesets", "apps.kruise.io/v1beta1"}, "api-resources")
	s.prints(t, []string{kruiseApps}, "api-versions")
	s.prints(t, []string{"Client Version: v", "Server Version: v"}, "version")
	s.prints(t, []string{"DESIRED", "web"}, "get", "clonesets", "-o", "wide", "-A")
	s.prints(t, []string{"cloneset.apps.kruise.io/web"}, "get", "all", "-A", "-o", "name")
	s.prints(t, []string{"Min Ready Seconds:"}, "describe", "cloneset/web")
	if got := s.do(t, "get", "all", "-l", "app=none", "-o", "name"); strings.Contains(got, "cloneset") {
		t.Errorf("get all -l app=none prints %s", got)
	}
	s.fails(t, "forbidden", "get", "clonesets", "--as=one")
}

// testLocal has the commands that no cluster answers.
func (p *plugin) testLocal(t *testing.T) {
	s := p.space(t)
	for shell, text := range map[string]string{
		"bash": "complete -o default", "zsh": "#compdef kubectl-kruise", "fish": "complete -c kubectl-kruise",
		"powershell": "Register-ArgumentCompleter",
	} {
		s.prints(t, []string{text}, "completion", shell)
	}
	s.apply(t, clonesOf("web", 0))
	s.prints(t, []string{"web\n", ":4"}, "__complete", "get", "cloneset", "")
	s.prints(t, []string{"--kubeconfig"}, "options")
	s.run(t, s.namespace, "", "plugin", "list") // fails where PATH has no plugin
	dir := t.TempDir()
	for name, text := range map[string]string{
		"web.yaml": clonesOf("web", 1), "kustomization.yaml": "resources: [web.yaml]\nnamePrefix: a-\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.prints(t, []string{"name: a-web"}, "kustomize", dir)
	s.namespace = "" // which config takes for that of a context
	at := "--kubeconfig=" + filepath.Join(dir, "config")
	for _, words := range []string{
		"set-cluster one --server=https://192.0.2.1", "set-credentials me --token=t", "set-context a --cluster=one --user=me",
		"use-context a", "set contexts.a.namespace shop", "rename-context a b",
	} {
		s.do(t, append(strings.Fields("config "+words), at)...)
	}
	for words, want := range map[string]string{
		"current-context": "b", "get-contexts": "shop", "get-clusters": "one", "get-users": "me", "view": "https://192.0.2.1",
	} {
		s.prints(t, []string{want}, "config", words, at)
	}
	for _, words := range []string{"unset current-context", "delete-context b", "delete-user me", "delete-cluster one"} {
		s.do(t, append(strings.Fields("config "+words), at)...)
	}
	if got := s.do(t, "config", "view", at); strings.Contains(got, "192.0.2.1") {
		t.Errorf("config view prints %s", got)
	}
}
