// Package chromium owns the browser: a Chromium process, the pages loaded in it, and their limits.
// It also owns the local proxies through which pages send all requests. It starts a new process
// when the current one has loaded enough pages, uses too much memory or hangs. It does not own the
// verdict on a page, robots.txt, politeness or attempts (web and unit do). Connections and the
// address guard belong to pkg/egress.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/turns"
)

// Defaults of Config.
const (
	DefaultPages    = 4
	DefaultRecycle  = 100
	DefaultMemory   = 1536 << 20
	DefaultBytes    = 32 << 20
	DefaultRequests = 400
	DefaultBody     = 10 << 20
)

const (
	startTime   = 30 * time.Second // to start a process
	closeTime   = 5 * time.Second  // to close a page; then its process is killed
	memoryEvery = time.Second      // between two checks of the memory
	// time after the load event until a page is read although it still makes requests
	settleAfter  = 5 * time.Second
	moreWithin   = 4 * time.Second // for the content after a click or a scroll
	marginBefore = 2 * time.Second // before the deadline, to read the page
)

// Config configures a Browser. Zero values mean the defaults.
type Config struct {
	Path      string // of the executable
	Client    *egress.Client
	UserAgent string // "": the browser's own
	Logger    *slog.Logger
	Reader    *reading.Guard // guards the reading of what sites send; nil: one that keeps no pages

	Pages    int   // concurrent
	Recycle  int   // per process
	Memory   int64 // bytes of a process with its children; beyond it the largest is killed
	Bytes    int64 // sent and received by one page, over all its requests
	Requests int   // most connections, and most requests, of one page
	Body     int64 // most bytes of the page's text
}

func (c *Config) setDefaults() {
	set(&c.Pages, DefaultPages)
	set(&c.Recycle, DefaultRecycle)
	set(&c.Memory, DefaultMemory)
	set(&c.Bytes, DefaultBytes)
	set(&c.Requests, DefaultRequests)
	set(&c.Body, DefaultBody)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Reader == nil {
		c.Reader = reading.New("fetcher", reading.Config{Logger: c.Logger})
	}
}

func set[T int | int64](setting *T, value T) {
	if *setting <= 0 {
		*setting = value
	}
}

// Browser loads pages. It is safe for concurrent use. Close ends it.
type Browser struct {
	config  Config
	places  *turns.Line
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // processes and pages

	mu      sync.Mutex
	current *process // nil: none is running
}

// process is one Chromium process.
type process struct {
	ctx   context.Context // a chromedp context; set when ready is closed
	kill  context.CancelFunc
	sink  *gate // refuses the requests of the process itself, which no page made
	ready chan struct{}
	err   error // why it did not start; set when ready is closed

	mu     sync.Mutex
	loaded int  // pages begun in all
	open   int  // pages open now
	retire bool // it takes no more pages
}

// Open makes a browser from an executable. It starts it once, to check within half a minute that it
// works. Pages start their own processes. Its errors are ctx's, or say why there is no browser.
func Open(ctx context.Context, config Config) (*Browser, error) {
	config.setDefaults()
	path, err := exec.LookPath(config.Path)
	if err != nil {
		return nil, fmt.Errorf("chromium: %w", err)
	}
	config.Path = path
	b := &Browser{config: config, places: turns.NewLine(config.Pages, ComeAgain)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	p, err := b.acquireProcess(ctx)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("chromium: %s: %w", path, err)
	}
	p.end()
	b.give(p)
	return b, nil
}

// Close kills the process, so that open pages fail, and waits for their end.
func (b *Browser) Close() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.running.Wait()
}

// acquireProcess returns a process for one page. The caller gives it back.
func (b *Browser) acquireProcess(ctx context.Context) (*process, error) {
	b.mu.Lock()
	if b.ctx.Err() != nil {
		b.mu.Unlock()
		return nil, fault.Wrap(fault.Unavailable, b.ctx.Err(), "The browser is closed.")
	}
	if b.current == nil || !b.current.take(b.config.Recycle) {
		b.current = b.startLocked()
		b.current.take(b.config.Recycle)
	}
	p := b.current
	b.running.Add(1)
	b.mu.Unlock()
	select {
	case <-p.ready:
	case <-ctx.Done():
		b.give(p)
		return nil, ctx.Err()
	}
	if p.err != nil {
		b.give(p)
		return nil, fault.Wrap(fault.Unavailable, p.err, "The browser did not start.")
	}
	return p, nil
}

// give gives a process back. The last page of a retired process ends it.
func (b *Browser) give(p *process) {
	defer b.running.Done()
	p.leave()
}

// take begins a page. It returns false, and retires the process, if the process has begun most
// pages or is retired.
func (p *process) take(most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retire || p.loaded >= most {
		p.endLocked()
		return false
	}
	p.loaded++
	p.open++
	return true
}

// leave ends a page. A retired process ends with its last page.
func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	if p.retire {
		p.endLocked()
	}
}

// end retires a process, and kills it once no page is open.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
}

func (p *process) endLocked() {
	p.retire = true
	if p.open == 0 {
		p.kill()
	}
}

// destroy kills a process with all its pages.
func (b *Browser) destroy(p *process, why string) {
	b.config.Logger.Warn("chromium: killed", "why", why)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire = true
	p.kill()
}

// startLocked starts a process.
func (b *Browser) startLocked() *process {
	ctx, cancel := context.WithCancel(b.ctx)
	p := &process{kill: cancel, ready: make(chan struct{})}
	b.running.Go(func() {
		defer cancel()
		b.run(ctx, p)
	})
	return p
}

// run runs a process from start to end.
func (b *Browser) run(ctx context.Context, p *process) {
	dir, err := os.MkdirTemp("", "shoal-chromium")
	if err == nil {
		defer removeDir(dir)
		p.sink, err = openGate(ctx, &b.config, "", nil, 0, 0) // nothing may pass
	}
	if err != nil {
		p.started(ctx, err)
		return
	}
	defer p.sink.close()
	var pid int
	allocator, stop := chromedp.NewExecAllocator(ctx, b.flags(dir, p.sink.address())...)
	defer stop()
	browserCtx, stopBrowser := chromedp.NewContext(allocator,
		chromedp.WithErrorf(func(format string, args ...any) {
			b.config.Logger.Debug("chromium: " + fmt.Sprintf(format, args...))
		}))
	defer stopBrowser()
	starting := time.AfterFunc(startTime, stop)
	_, err = chromedp.CallBrowser(browserCtx, browser.SetDownloadBehavior,
		browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny})
	starting.Stop()
	if c := chromedp.FromContext(browserCtx); err == nil && c.Browser != nil &&
		c.Browser.Process() != nil {
		pid = c.Browser.Process().Pid
	}
	p.started(browserCtx, err)
	if err != nil {
		b.config.Logger.Error("chromium: did not start", "err", err)
		return
	}
	b.watch(ctx, p, pid)
	killGroup(pid)
}

// started tells the waiters how a process's start ended. If it failed, the process is retired.
func (p *process) started(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.err, p.retire = ctx, err, p.retire || err != nil
	close(p.ready)
}

// watch returns when the process has ended or must end.
func (b *Browser) watch(ctx context.Context, p *process, pid int) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-chromedp.FromContext(p.ctx).Browser.LostConnection:
			b.destroy(p, "it ended by itself")
			return
		case <-ticker.C:
		}
		switch used, largest := memoryOfGroup(pid); {
		case used <= b.config.Memory:
		case largest != pid: // a page's process: the others go on
			b.config.Logger.Warn("chromium: a page's process was killed", "megabytes", used>>20)
			killProcess(largest)
		default:
			b.destroy(p, fmt.Sprintf("it uses %d MB of memory", used>>20))
			return
		}
	}
}

// flags start a browser that reaches nothing on its own. All requests go to a proxy of ours, and
// names are not resolved. Whatever bypasses a proxy is off: QUIC, WebRTC, prefetching, discovery in
// the local network, the vendor's own services.
func (b *Browser) flags(dir, sink string) []chromedp.ExecAllocatorOption {
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	flags = append(flags, chromedp.ExecPath(b.config.Path), chromedp.UserDataDir(dir),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { inGroup(cmd, dir) }),
		chromedp.ProxyServer(sink), chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-quic", true), chromedp.Flag("dns-prefetch-disable", true),
		chromedp.Flag("no-pings", true),
		chromedp.Flag("disable-popup-blocking", false), // chromedp sets this flag
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("disable-field-trial-config", true), chromedp.Flag("disable-features",
			"Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AsyncDns,NetworkTimeServiceQuerying,"+
				"HttpsUpgrades,HttpsFirstBalancedMode,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,AutofillServerCommunication,WebRtcHideLocalIpsWithMdns"),
		chromedp.Flag("blink-settings", "imagesEnabled=false"), chromedp.Flag("mute-audio", true),
		chromedp.Flag("js-flags", "--max-old-space-size=512"),
		chromedp.Flag("renderer-process-limit", strconv.Itoa(2*b.config.Pages)),
		chromedp.DisableGPU, chromedp.Flag("disable-breakpad", true),
		chromedp.Flag("disable-crash-reporter", true),
		chromedp.WindowSize(1366, 900))
	if b.config.UserAgent != "" {
		flags = append(flags, chromedp.UserAgent(b.config.UserAgent))
	}
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // as root, Chromium needs this to start
	}
	return flags
}

// removeDir removes a profile. It retries while a dying process still writes files.
func removeDir(dir string) {
	for range 5 {
		if err := os.RemoveAll(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
	}
}
