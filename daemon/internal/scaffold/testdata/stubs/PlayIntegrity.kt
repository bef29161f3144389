// The part of Google's library for Play Integrity that an app uses, and of the Tasks API that it returns.
package com.google.android.play.core.integrity

import android.content.Context
import com.google.android.gms.tasks.Task

abstract class IntegrityTokenRequest {
    abstract class Builder {
        abstract fun setNonce(nonce: String): Builder

        abstract fun build(): IntegrityTokenRequest
    }

    companion object {
        @JvmStatic fun builder(): Builder = throw UnsupportedOperationException()
    }
}

abstract class IntegrityTokenResponse {
    abstract fun token(): String
}

interface IntegrityManager {
    fun requestIntegrityToken(request: IntegrityTokenRequest): Task<IntegrityTokenResponse>
}

object IntegrityManagerFactory {
    @JvmStatic fun create(context: Context): IntegrityManager = throw UnsupportedOperationException("$context")
}
