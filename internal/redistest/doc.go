// Package redistest runs private redis-server processes for tests: plain, as a cluster, as a ring, behind a proxy that
// breaks things and behind one that knows little of Redis. It is test support; nothing that ships imports it.
//
// Every server listens on loopback alone, keeps nothing on disk, and is killed by its own process handle when the test
// ends; on Linux also when the test binary dies. The binary is redis-server in PATH, or what the environment variable
// REDIS_SERVER names, such as valkey-server. Without one a test fails, it does not skip.
//
// A package that needs one server for all of its tests writes
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
//
// and calls [Shared] in each test. Tests that kill, stop or reconfigure a server call [Start].
package redistest
