package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestValues: each value changes what it says, and nothing else.
func TestValues(t *testing.T) {
	before, err := render("crds.managed=false")
	if err != nil {
		t.Fatal(err)
	}
	for value, c := range map[string]struct {
		why string
		// changed are the objects that differ; new and gone begin with + and -.
		changed []string
		// has and lacks are parts of the JSON of what has changed.
		has, lacks []string
	}{
		"featureGates=KruiseDaemon=false": {
			why:     "daemons are away, and pull jobs with them",
			changed: []string{"-DaemonSet", "-ClusterRole", "-ClusterRoleBinding", "Deployment"},
			has:     []string{"--feature-gates=KruiseDaemon=false"},
		},
		"featureGates=' PodWebhook = false , ImagePullJobGate=true'": {
			why:     "the list is read as the programs read it, and pods have no entries",
			changed: []string{"-MutatingWebhookConfiguration", "-MutatingWebhookConfiguration", "-ValidatingWebhookConfiguration", "Deployment", "DaemonSet"},
		},
		"featureGates=ResourceDistributionGate=true,ResourceDistributionGate=false,ImagePullJobGate=true": {
			why: "the later one wins", changed: []string{"Deployment", "DaemonSet"},
		},
		"featureGates=AllAlpha=true,ImagePullJobGate=false": {
			why: "gates of pulls ahead imply pull jobs", changed: []string{
				"Deployment", "DaemonSet", "+ClusterRole", "+ClusterRoleBinding",
			},
			has: []string{"kruise-manager-instances"},
		},
		"installation.createNamespace=false":    {"it exists", []string{"-Namespace"}, nil, nil},
		"daemon.createSecretNamespace=false":    {"it exists", []string{"-Namespace"}, nil, nil},
		"manager.replicas=3":                    {"replicas", []string{"Deployment"}, []string{`"replicas":3`}, nil},
		"manager.image.digest=sha256:" + digest: {"a digest", []string{"Deployment"}, []string{"kruise-manager@sha256:" + digest}, []string{":dev"}},
		"manager.webhook.port=9443":             {"a port", []string{"Deployment"}, []string{`"WEBHOOK_PORT","value":"9443"`, `"containerPort":9443`}, nil},
		"manager.metrics.port=9090":             {"a port", []string{"Deployment"}, []string{"--metrics-addr=:9090", `"containerPort":9090`}, nil},
		"manager.healthProbe.port=9000":         {"a port", []string{"Deployment"}, []string{"--health-probe-addr=:9000"}, nil},
		"manager.enablePprof=true":              {"profiles", []string{"Deployment"}, []string{"--pprof-addr=localhost:8090"}, nil},
		"manager.resyncPeriod='0'":              {"no resync", []string{"Deployment"}, []string{"--sync-period=0"}, nil},
		"manager.loggingFormat=json":            {"logs", []string{"Deployment"}, []string{"--logging-format=json"}, nil},
		"manager.log.level=4":                   {"logs", []string{"Deployment"}, []string{`"-v=4"`}, []string{`"-v=2"`}},
		"manager.hostNetwork=true":              {"the network of the node", []string{"Deployment"}, []string{`"hostNetwork":true`}, nil},
		"manager.tolerations=[{operator: Exists}]": {
			"where it runs", []string{"Deployment"}, []string{`"tolerations":[{"operator":"Exists"}]`}, nil,
		},
		"manager.nodeAffinity={preferredDuringSchedulingIgnoredDuringExecution: []}": {
			"where it runs", []string{"Deployment"}, []string{`"affinity":{"nodeAffinity":`}, nil,
		},
		"manager.extraArgs=['--pub-exempt-users=']": {"a flag", []string{"Deployment"}, []string{`"--pub-exempt-users="`}, nil},
		"manager.extraEnvs=[{name: A, value: b}]":   {"a variable", []string{"Deployment"}, []string{`{"name":"A","value":"b"}`}, nil},
		"daemon.extraEnvs=[{name: A, value: b}]":    {"a variable", []string{"DaemonSet"}, []string{`{"name":"A","value":"b"}`}, nil},
		"daemon.podLabels={team: x}":                {"a label", []string{"DaemonSet"}, []string{`"team":"x"`, `"control-plane":"daemon"`}, nil},
		"daemon.image.pullPolicy=Always":            {"a pull policy", []string{"DaemonSet"}, []string{`"imagePullPolicy":"Always"`}, nil},
		"daemon.port=10331":                         {"a port", []string{"DaemonSet"}, []string{"--addr=127.0.0.1:10331"}, nil},
		"daemon.log.level='5'":                      {"logs", []string{"DaemonSet"}, []string{`"-v=5"`}, nil},
		"daemon.socketLocation=/var/run/k3s":        {"sockets", []string{"DaemonSet"}, []string{`"path":"/var/run/k3s"`}, nil},
		"daemon.socketFile=containerd.sock":         {"sockets", []string{"DaemonSet"}, []string{"--socket-file=containerd.sock"}, nil},
		"daemon.enablePprof=true":                   {"profiles", []string{"DaemonSet"}, []string{"--pprof-addr=localhost:10222"}, nil},
		"daemon.affinity.nodeAffinity=null":         {"all nodes", []string{"DaemonSet"}, nil, []string{"virtual-kubelet"}},
		"daemon.credentialProvider={enable: true, hostPath: /opt/plugins, awsCredentialsDir: /aws}": {
			"logins by plugins",
			[]string{"DaemonSet"},
			[]string{"--plugin-bin-dir=/credential-provider-plugin", `"path":"/opt/plugins"`, `"path":"/aws"`, `"mountPath":"/root/.aws"`},
			nil,
		},
		"enableKubeCacheMutationDetector=true": {"a check", []string{"Deployment", "DaemonSet"}, []string{"KUBE_CACHE_MUTATION_DETECTOR"}, nil},
		"imagePullSecrets=[{name: login}]":     {"logins", []string{"Deployment", "DaemonSet"}, []string{`"imagePullSecrets":[{"name":"login"}]`}, nil},
		"serviceAccount.annotations={a: b}":    {"identities", []string{"ServiceAccount", "ServiceAccount"}, []string{`{"a":"b"}`}, nil},
		"webhookConfiguration.timeoutSeconds=25": {
			"timeouts", []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, []string{`"timeoutSeconds":25`}, nil,
		},
		"webhookConfiguration.aksIntegration=true": {
			"namespaces of AKS",
			[]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
			[]string{`"key":"kubernetes.azure.com/managedby"`},
			nil,
		},
		"aggregatedRoles.enabled=false": {"no roles", []string{"-ClusterRole", "-ClusterRole", "-ClusterRole", "-ClusterRole"}, nil, nil},
	} {
		t.Run(value, func(t *testing.T) {
			after, err := render(value, "crds.managed=false")
			if err != nil {
				t.Fatal(err)
			}
			changed, parts := difference(before, after)
			want := slices.Sorted(slices.Values(c.changed))
			if !slices.Equal(changed, want) {
				t.Errorf("%s: %q changed, want %q", c.why, changed, want)
			}
			for _, part := range c.has {
				if !strings.Contains(parts, part) {
					t.Errorf("%s: nothing has %s:\n%s", c.why, part, parts)
				}
			}
			for _, part := range c.lacks {
				if strings.Contains(parts, part) {
					t.Errorf("%s: it still has %s:\n%s", c.why, part, parts)
				}
			}
		})
	}
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// difference returns the kinds of objects that differ, and what they are now as JSON.
func difference(before, after objects) (kinds []string, parts string) {
	kind := func(id string) string { k, _, _ := strings.Cut(id, " "); return k }
	var text bytes.Buffer
	for id, o := range after {
		was, is := encode(before[id]), encode(o)
		if was == is {
			continue
		}
		mark := ""
		if before[id] == nil {
			mark = "+"
		}
		kinds = append(kinds, mark+kind(id))
		text.WriteString(is + "\n")
	}
	for id := range before {
		if after[id] == nil {
			kinds = append(kinds, "-"+kind(id))
		}
	}
	slices.Sort(kinds)
	return kinds, text.String()
}

func encode(o map[string]any) string {
	out, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// An installation elsewhere names its own namespaces alone, in CRDs and in policies, too.
func TestNamespaces(t *testing.T) {
	all, err := render("installation.namespace=platform", "daemon.secretNamespace=pulls")
	if err != nil {
		t.Fatal(err)
	}
	for id, o := range all {
		for _, other := range []string{"kruise-system", "kruise-daemon-config"} {
			if text := encode(o); strings.Contains(text, other) {
				t.Errorf("%s names %s", id, other)
			}
		}
	}
	if all["Namespace /platform"] == nil || all["Namespace /pulls"] == nil {
		t.Error("the namespaces are not there")
	}
}

// CRDs outlive a release, and a value that leaves them out.
func TestDefinitionsAreKept(t *testing.T) {
	all, err := render("externalCerts.annotations={cert-manager.io/inject-ca-from: kruise-system/kruise-webhook}")
	if err != nil {
		t.Fatal(err)
	}
	definitions, injected := 0, 0
	for id, o := range all {
		if o["kind"] != "CustomResourceDefinition" {
			continue
		}
		definitions++
		if annotation(o, "helm.sh/resource-policy") != "keep" {
			t.Errorf("%s is deleted with the release", id)
		}
		converted := strings.Contains(encode(o), `"strategy":"Webhook"`)
		if converted != (annotation(o, "cert-manager.io/inject-ca-from") != "") {
			t.Errorf("%s has a webhook: %t; and annotations %v", id, converted, metadata(o)["annotations"])
		}
		if converted {
			injected++
		}
	}
	if definitions != 18 || injected != 12 {
		t.Errorf("%d CRDs, %d of which have a webhook", definitions, injected)
	}
	for value, want := range map[string]int{"crds.managed=false": 0, "crds.keep=false": 18} {
		all, err := render(value)
		if err != nil {
			t.Fatal(err)
		}
		definitions, kept := 0, 0
		for _, o := range all {
			if o["kind"] == "CustomResourceDefinition" {
				definitions++
			}
			if annotation(o, "helm.sh/resource-policy") != "" {
				kept++
			}
		}
		if definitions != want || kept != 0 {
			t.Errorf("%s: %d CRDs, %d kept", value, definitions, kept)
		}
	}
}

// A value that cannot work is refused before anything is applied.
func TestRefusedValues(t *testing.T) {
	for value, want := range map[string]string{
		"manager.image.repository=openkruise/kruise-manager":    "the image of OpenKruise",
		"manager.replicas='two'":                                "manager.replicas",
		"installation.namespace=Kruise_System":                  "installation.namespace",
		"featureGates=ImagePullJobGate":                         "featureGates",
		"webhookConfiguration.timeoutSeconds=60":                "timeoutSeconds",
		"daemon.credentialProvider.enable=true":                 "must be the absolute path",
		"daemon.socketLocation=run":                             "socketLocation",
		"manager.image.digest=latest":                           "digest",
		"metrics.monitors=maybe":                                "metrics.monitors",
		"daemon.extraEnvs=[{value: a variable without a name}]": "name",
	} {
		if _, err := render(value); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "/", "."), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
	// What the chart of OpenKruise has, and this one has not, is no error.
	for _, value := range []string{
		"helmHooks.image.tag=v0.1.0", "installation.roleListGroups=['*']", "webhookConfiguration.failurePolicy.pods=Ignore",
		"nameOverride=x", "daemon.windowsImage={repository: x}",
	} {
		if _, err := render(value); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Each value is in the schema, so that a misspelt type is found.
func TestSchemaHasAllValues(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, values, schema map[string]any)
	walk = func(path string, values, schema map[string]any) {
		properties, ok := schema["properties"].(map[string]any)
		if !ok {
			return // a free map
		}
		for key, value := range values {
			of, ok := properties[key].(map[string]any)
			if !ok {
				t.Errorf("the schema lacks %s%s", path, key)
				continue
			}
			if inner, ok := value.(map[string]any); ok {
				walk(path+key+".", inner, of)
			}
		}
		for key := range properties {
			if _, ok := values[key]; !ok && key != "roleListGroups" {
				t.Errorf("values.yaml lacks %s%s", path, key)
			}
		}
	}
	walk("", c.Values, schema)
}

// The page names each value that OpenKruise's chart has otherwise.
func TestPageNamesValues(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`([a-z]\\w+(?:\\.\\w+)+)`").FindAllStringSubmatch(string(page), -1) {
		at, known := any(c.Values), true
		for _, key := range strings.Split(m[1], ".") {
			values, ok := at.(map[string]any)
			if at, known = values[key]; !ok || !known {
				known = false
				break
			}
		}
		if first, _, _ := strings.Cut(m[1], "."); c.Values[first] != nil && !known && !foreign[m[1]] {
			t.Errorf("docs/install.md names %s, which is no value", m[1])
		}
	}
	for value := range foreign {
		if !strings.Contains(string(page), fmt.Sprintf("`%s`", value)) {
			t.Errorf("docs/install.md does not say what becomes of %s", value)
		}
	}
}

// foreign are values of OpenKruise's chart that this one has not.
var foreign = map[string]bool{
	"installation.roleListGroups": true, "webhookConfiguration.failurePolicy": true, "helmHooks.image": true,
}

// Monitors and dashboards of the chart are those of config/monitoring, and monitors fit what serves the metrics.
func TestMonitoring(t *testing.T) {
	all, err := render("metrics.secure=true", "metrics.monitors=true", "metrics.dashboards=true")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range comparable(kustomized(t, "monitoring")) {
		if got := comparable(objects{id: all[id]})[id]; encode(got) != encode(want) {
			t.Errorf("%s differs:\n%s\n%s", id, encode(want), encode(got))
		}
	}
	plain, err := render("metrics.monitors=true", "metrics.labels={release: prometheus}")
	if err != nil {
		t.Fatal(err)
	}
	monitor := encode(plain["ServiceMonitor kruise-system/kruise-controller-manager"])
	if strings.Contains(monitor, "https") || !strings.Contains(monitor, `"release":"prometheus"`) {
		t.Errorf("plain metrics are scraped by %s", monitor)
	}
	if plain["PodMonitor kruise-system/kruise-daemon"] != nil {
		t.Error("daemons are scraped, which serve metrics to their node alone")
	}
	for _, c := range []struct{ monitor, workload, port string }{
		{"ServiceMonitor kruise-system/kruise-controller-manager", "Service kruise-system/kruise-controller-manager", `"targetPort":"metrics"`},
		{"PodMonitor kruise-system/kruise-daemon", "DaemonSet kruise-system/kruise-daemon", `"name":"metrics"`},
	} {
		workload := encode(all[c.workload])
		m := regexp.MustCompile(`"matchLabels":\{"control-plane":"([\w-]+)"\}`).FindStringSubmatch(encode(all[c.monitor]))
		if m == nil || !strings.Contains(workload, `"control-plane":"`+m[1]+`"`) || !strings.Contains(workload, c.port) {
			t.Errorf("%s does not select %s", c.monitor, workload)
		}
	}
}
