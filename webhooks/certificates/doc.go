// Package certificates keeps the serving certificate of webhooks: makes it, shares it between replicas through a
// Secret, renews it, and writes the CA into the webhook configurations and CRDs.
//
//	secret := types.NamespacedName{Namespace: "shop", Name: "webhooks"}
//	keeper, err := certificates.New(config, secret, certificates.Options{
//		Targets: []certificates.Target{certificates.Mutating("shop"), certificates.Conversion("carts.shop.example.com")},
//	})
//	...
//	server := webhook.NewServer(webhook.Options{Port: 9443, TLSOpts: []func(*tls.Config){keeper.TLS}})
//	mgr, err := ctrl.NewManager(config, ctrl.Options{WebhookServer: keeper.With(server)})
//	...
//	err = mgr.AddReadyzCheck("webhook", keeper.Ready)
//	err = mgr.AddReadyzCheck("caches", keeper.ColdStart(caches))
//
// Do not use it where certificates come as files that something else renews: controller-runtime's webhook server reads
// those by itself. For a Secret that cert-manager fills, set Options.External.
//
// # What holds
//
//   - All replicas run it, no leader is needed: the first replica creates the Secret, the others read it.
//   - Nothing but the Secret decides: two replicas never write different things into one target.
//   - A target is written only where it differs, and only the CA in entries that name the service.
//   - A certificate is served after the CA that signed it is in all targets, and a replaced CA stays there until all
//     replicas have changed. So a rotation, and also the loss of the Secret, interrupts nothing.
//   - No informer: one watch of metadata for each named object. The private key is in memory and in the Secret, in no
//     file.
//
// # What it needs
//
// In its namespace: create secrets; get, watch, update its one Secret. In the cluster, by name: get, watch, patch the
// targets.
//
// # Why not cert-controller
//
// github.com/open-policy-agent/cert-controller v0.16 keeps to our floor of dependencies. From its source, not from a
// trial: it caches every CRD of the cluster whole; it does not create a Secret that is missing or was deleted; it hands
// certificates over through a mounted volume, which kubelets refresh by the minute; it replaces a CA at once, so that
// calls would fail until then; and it writes each target at each look. All of it lies in what it is made of, not in
// options.
package certificates
