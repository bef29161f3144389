/** JSON as maps, lists, strings, numbers (Long or Double), booleans and null. */
private object Json {
    fun write(what: String, value: Any?): String = try {
        StringBuilder().also { put(it, value) }.toString()
    } catch (e: IllegalArgumentException) {
        throw GlassesError("bad_payload", "$what cannot be encoded as JSON")
    }

    private fun put(out: StringBuilder, value: Any?) {
        when (value) {
            null, is Boolean, is Int, is Long, is Short, is Byte -> out.append(value.toString())
            is Number -> {
                val d = value.toDouble()
                require(!d.isNaN() && !d.isInfinite()) { "JSON has no such number" }
                out.append(value.toString())
            }
            is Map<*, *> -> {
                out.append('{')
                var first = true
                for ((k, v) in value) {
                    if (!first) out.append(',')
                    first = false
                    quote(out, k.toString())
                    out.append(':')
                    put(out, v)
                }
                out.append('}')
            }
            is Iterable<*> -> {
                out.append('[')
                var first = true
                for (v in value) {
                    if (!first) out.append(',')
                    first = false
                    put(out, v)
                }
                out.append(']')
            }
            else -> quote(out, value.toString())
        }
    }

    private fun quote(out: StringBuilder, s: String) {
        out.append('"')
        for (c in s) {
            when {
                c == '"' || c == '\\' -> out.append('\\').append(c)
                c < ' ' -> out.append(String.format("\\u%04x", c.toInt()))
                else -> out.append(c)
            }
        }
        out.append('"')
    }

    fun parse(text: String): Any? {
        val p = Parser(text)
        val value = p.value(0)
        p.space()
        if (p.at < text.length) throw IOException("not JSON")
        return value
    }

    private class Parser(val text: String) {
        var at = 0

        fun space() {
            while (at < text.length && text[at] in " \t\r\n") at++
        }

        private fun take(c: Char) {
            space()
            if (at >= text.length || text[at] != c) throw IOException("not JSON")
            at++
        }

        private fun has(c: Char): Boolean {
            space()
            if (at >= text.length || text[at] != c) return false
            at++
            return true
        }

        fun value(depth: Int): Any? {
            space()
            if (at >= text.length || depth > 200) throw IOException("not JSON")
            return when (text[at]) {
                '{' -> objectOf(depth)
                '[' -> listOf(depth)
                '"' -> string()
                't' -> word("true", true)
                'f' -> word("false", false)
                'n' -> word("null", null)
                else -> number()
            }
        }

        private fun objectOf(depth: Int): Map<String, Any?> {
            val out = LinkedHashMap<String, Any?>()
            take('{')
            if (has('}')) return out
            do {
                space()
                val key = string()
                take(':')
                out[key] = value(depth + 1)
            } while (has(','))
            take('}')
            return out
        }

        private fun listOf(depth: Int): List<Any?> {
            val out = ArrayList<Any?>()
            take('[')
            if (has(']')) return out
            do out.add(value(depth + 1)) while (has(','))
            take(']')
            return out
        }

        private fun word(word: String, value: Any?): Any? {
            if (!text.startsWith(word, at)) throw IOException("not JSON")
            at += word.length
            return value
        }

        private fun number(): Number {
            val start = at
            while (at < text.length && text[at] in "+-0123456789.eE") at++
            val word = text.substring(start, at)
            val whole: Number? = word.toLongOrNull()
            return whole ?: (word.toDoubleOrNull() ?: throw IOException("not JSON"))
        }

        private fun string(): String {
            val out = StringBuilder()
            take('"')
            while (true) {
                if (at >= text.length) throw IOException("not JSON")
                val c = text[at++]
                if (c == '"') return out.toString()
                out.append(if (c == '\\') escaped() else c)
            }
        }

        private fun escaped(): Char {
            if (at >= text.length) throw IOException("not JSON")
            val c = text[at++]
            if (c == 'u') {
                if (at + 4 > text.length) throw IOException("not JSON")
                at += 4
                return text.substring(at - 4, at).toIntOrNull(16)?.toChar() ?: throw IOException("not JSON")
            }
            val i = "\"\\/bfnrt".indexOf(c)
            if (i < 0) throw IOException("not JSON")
            return "\"\\/\b\u000c\n\r\t"[i]
        }
    }
}

