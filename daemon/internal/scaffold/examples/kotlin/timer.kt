// Counts down on the session's clock, which a test may run in virtual time. It draws once for each change, and sets
// the time of the next before it draws: late pictures do not slow it. A tap pauses and resumes it, back restarts it.
import service.Event
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private const val SECONDS = 5

private class Countdown(val glasses: Glasses) {
    var left = SECONDS
    var stop: (() -> Unit)? = null // while it runs

    fun attempt(command: () -> Unit) {
        try {
            command()
        } catch (e: GlassesError) {
            if (e.code == "closed") throw e
            System.err.println("refused (${e.code}): ${e.message}") // folded, not worn, no speaker, ...: the timer continues
        }
    }

    fun draw() {
        val hint = if (left == 0) "Done" else if (stop != null) "Tap to pause" else "Paused"
        attempt {
            glasses.show(mapOf("type" to "column", "align" to "center", "padding" to 16, "children" to listOf(
                mapOf("type" to "text", "style" to "large", "text" to left.toString()),
                mapOf("type" to "text", "text" to hint)
            )))
        }
    }

    fun tick() {
        left--
        val done = left == 0
        stop = if (done) null else glasses.after(1000) { tick() }
        draw()
        if (done) attempt { glasses.play("success") }
    }

    fun pause() {
        stop?.invoke()
        stop = null
    }

    fun start() {
        pause()
        if (left == 0) left = SECONDS
        stop = glasses.after(1000) { tick() }
    }

    fun handle(event: Event) {
        val kind = if (event.type == "input") event.payload["kind"] else null
        if (kind == "back") {
            left = SECONDS
            start()
        } else if (kind == "tap" || kind == "select") {
            if (stop != null) pause() else start()
        } else if (event.type !in listOf("hinge", "wear", "thermal", "link", "device")) {
            return
        }
        draw()
    }
}

fun main() {
    val glasses = connect(Settings("Timer", "1.0", release = false))
    val countdown = Countdown(glasses)
    countdown.start()
    countdown.draw()
    glasses.run { countdown.handle(it) }
}
