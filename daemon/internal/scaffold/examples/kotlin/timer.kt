// Counts down on the session's clock, so that a test in virtual time need not wait for it.
import service.Settings
import service.connect

private fun big(text: String) = mapOf("type" to "text", "text" to text, "style" to "title", "align" to "center")

fun main() {
    connect(Settings("Timer", "1.0", release = false)).use { glasses ->
        for (left in 5 downTo 1) {
            glasses.show(big(left.toString()))
            glasses.sleep(1000)
        }
        glasses.show(big("Done"))
        glasses.play("success")
    }
}
